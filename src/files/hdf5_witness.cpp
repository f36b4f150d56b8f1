// SPDX-License-Identifier: Apache-2.0
#include "files/hdf5_witness.hpp"

#include "files/hdf5_handle.hpp"

#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>  // drivers, since 1.13
#endif

#include <algorithm>
#include <limits>
#include <memory>

namespace belay::files {

/// What the library calls.
struct WitnessDriver {
  H5FD_t library = {};  ///< the library's own; first
  Hdf5Witness* witness = nullptr;
  haddr_t end = 0;  ///< of what the library may ask for

  static WitnessDriver* of(H5FD_t* file) { return reinterpret_cast<WitnessDriver*>(file); }
  static const WitnessDriver* of(const H5FD_t* file) {
    return reinterpret_cast<const WitnessDriver*>(file);
  }

  static H5FD_t* open(const char*, unsigned, hid_t access, haddr_t) {
    const auto* witness = static_cast<Hdf5Witness* const*>(H5Pget_driver_info(access));
    if (witness == nullptr) return nullptr;
    auto driver = std::make_unique<WitnessDriver>();
    driver->witness = *witness;
    return &driver.release()->library;
  }
  static herr_t close(H5FD_t* file) {
    std::unique_ptr<WitnessDriver> gone(of(file));
    return 0;
  }
  static haddr_t get_end(const H5FD_t* file, H5FD_mem_t) { return of(file)->end; }
  static herr_t set_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
    of(file)->end = end;
    return 0;
  }
  static haddr_t file_end(const H5FD_t* file, H5FD_mem_t) {
    return of(file)->witness->file_->stamp().bytes;
  }
  static herr_t read(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address, std::size_t bytes,
                     void* to);
  static herr_t write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }
};

herr_t WitnessDriver::read(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address, std::size_t bytes,
                           void* to) {
  Hdf5Witness& witness = *of(file)->witness;
  const std::span<std::byte> target(static_cast<std::byte*>(to), bytes);
  // The library says the same of its global heap, which is structure.
  if (type == H5FD_MEM_DRAW && witness.finding_) {
    witness.raw_ = Range{address, bytes};
    return 0;
  }
  // Beyond the end there are zeros, as with the library's own drivers.
  const std::uint64_t file_bytes = witness.file_->stamp().bytes;
  const std::uint64_t left = file_bytes - std::min<std::uint64_t>(address, file_bytes);
  const std::size_t there = std::min<std::uint64_t>(bytes, left);
  std::fill(target.begin() + static_cast<std::ptrdiff_t>(there), target.end(), std::byte{});
  return witness.file_->read(address, target.first(there)) ? 0 : -1;
}

namespace {

H5FD_class_t driver_class() {
  H5FD_class_t driver = {};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
#endif
  driver.name = "belay-witness";
  driver.maxaddr = static_cast<haddr_t>(std::numeric_limits<std::int64_t>::max());
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(Hdf5Witness*);
  driver.open = WitnessDriver::open;
  driver.close = WitnessDriver::close;
  driver.get_eoa = WitnessDriver::get_end;
  driver.set_eoa = WitnessDriver::set_end;
  driver.get_eof = WitnessDriver::file_end;
  driver.read = WitnessDriver::read;
  driver.write = WitnessDriver::write;
  const H5FD_mem_t map[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(map), std::end(map), driver.fl_map);
  return driver;
}

}  // namespace

hid_t Hdf5Witness::open() {
  static const H5FD_class_t driver = driver_class();
  static const hid_t registered = H5FDregister(&driver);
  const Hdf5Properties access(H5Pcreate(H5P_FILE_ACCESS));
  Hdf5Witness* const self = this;
  if (!access.valid() || registered < 0 || H5Pset_driver(access.id(), registered, &self) < 0)
    return H5I_INVALID_HID;
  return H5Fopen(file_->path().c_str(), H5F_ACC_RDONLY, access.id());
}

std::optional<Range> Hdf5Witness::find_chunk(hid_t dataset, const hsize_t* place) {
  hsize_t bytes = 0;
  if (H5Dget_chunk_storage_size(dataset, place, &bytes) < 0 || bytes == 0 ||
      bytes > file_->stamp().bytes)
    return {};
  chunk_.resize(std::max<std::size_t>(chunk_.size(), bytes));
  raw_.reset();
  finding_ = true;
  std::uint32_t filters = 0;
  const herr_t read = H5Dread_chunk(dataset, H5P_DEFAULT, place, &filters, chunk_.data());
  finding_ = false;
  return read >= 0 && raw_ && raw_->length == bytes ? raw_ : std::nullopt;
}

}  // namespace belay::files
