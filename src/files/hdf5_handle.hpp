// SPDX-License-Identifier: Apache-2.0
// Identifiers of the HDF5 library with an owner.
#pragma once

#include <hdf5.h>

#include <utility>

namespace belay::files {

/// Closed by `Close` when destroyed.
template <herr_t (*Close)(hid_t)>
class Hdf5Handle {
 public:
  explicit Hdf5Handle(hid_t id) : id_(id) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hdf5Handle() {
    if (valid()) Close(id_);
  }

  bool valid() const { return id_ >= 0; }
  hid_t id() const { return id_; }
  /// False if closing failed, which for a file means that it was not written.
  bool close() { return Close(std::exchange(id_, H5I_INVALID_HID)) >= 0; }

 private:
  hid_t id_;
};

using Hdf5File = Hdf5Handle<H5Fclose>;
using Hdf5Group = Hdf5Handle<H5Gclose>;
using Hdf5Dataset = Hdf5Handle<H5Dclose>;
using Hdf5Space = Hdf5Handle<H5Sclose>;
using Hdf5Type = Hdf5Handle<H5Tclose>;
using Hdf5Properties = Hdf5Handle<H5Pclose>;
using Hdf5Attribute = Hdf5Handle<H5Aclose>;

}  // namespace belay::files
