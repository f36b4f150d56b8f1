// SPDX-License-Identifier: Apache-2.0
#include "compress/passes.hpp"

#include "compress/fpc.hpp"
#include "measure/must.hpp"

#include <fpzip.h>
#include <lz4.h>
#include <zlib.h>

#include <climits>
#include <memory>

namespace belay::bench {
namespace {

bool is_floating(const ElementType& type) {
  return type.kind == ElementKind::f64 || type.kind == ElementKind::f32;
}

class Fpc final : public Pass {
 public:
  const char* name() const override { return "fpc"; }
  bool takes(const ElementType& type) const override { return type.bytes == 8; }
  Bytes encode(const Stream& raw) const override { return fpc_encode(raw.bytes, kTableBits); }
  void decode(std::span<const std::byte> encoded, Stream& raw) const override {
    fpc_decode(encoded, raw.bytes, kTableBits);
  }

 private:
  static constexpr unsigned kTableBits = 16;
};

struct CloseFpz {
  void operator()(FPZ* fpz) const { writes ? fpzip_write_close(fpz) : fpzip_read_close(fpz); }
  bool writes;
};
using Fpz = std::unique_ptr<FPZ, CloseFpz>;

class Fpzip final : public Pass {
 public:
  const char* name() const override { return "fpzip"; }
  bool takes(const ElementType& type) const override { return is_floating(type); }
  Bytes encode(const Stream& raw) const override {
    Bytes encoded(raw.bytes.size() + raw.bytes.size() / 8 + 1024);
    const Fpz fpz(fpzip_write_to_buffer(encoded.data(), encoded.size()), {true});
    describe(raw, *fpz);
    const std::size_t size = fpzip_write(fpz.get(), raw.bytes.data());
    if (size == 0) die(fmt::format("fpzip: {}", fpzip_errstr[fpzip_errno]));
    encoded.resize(size);
    return encoded;
  }
  void decode(std::span<const std::byte> encoded, Stream& raw) const override {
    const Fpz fpz(fpzip_read_from_buffer(encoded.data()), {false});
    describe(raw, *fpz);
    if (fpzip_read(fpz.get(), raw.bytes.data()) == 0)
      die(fmt::format("fpzip: {}", fpzip_errstr[fpzip_errno]));
  }

 private:
  static void describe(const Stream& raw, FPZ& fpz) {
    const bool is_double = raw.type.kind == ElementKind::f64;
    const std::uint64_t numbers = raw.bytes.size() / raw.type.bytes;
    const auto extents = raw.shape.extents();
    std::uint64_t nx = numbers, ny = 1;
    if (extents.size() > 1) {
      nx = extents.back();
      ny = extents.size() > 2 ? extents[extents.size() - 2] : numbers / nx;
    }
    if (nx * ny == 0 || numbers % (nx * ny) != 0) nx = numbers, ny = 1;
    if (numbers > INT_MAX) die("fpzip: too many numbers for one stream");
    fpz.type = is_double ? FPZIP_TYPE_DOUBLE : FPZIP_TYPE_FLOAT;
    fpz.prec = 0;
    fpz.nx = static_cast<int>(nx);
    fpz.ny = static_cast<int>(ny);
    fpz.nz = nx * ny == 0 ? 1 : static_cast<int>(numbers / (nx * ny));
    fpz.nf = 1;
  }
};

class Lz final : public Pass {
 public:
  const char* name() const override { return "lz"; }
  bool takes(const ElementType&) const override { return true; }
  Bytes encode(const Stream& raw) const override {
    if (raw.bytes.size() > LZ4_MAX_INPUT_SIZE) die("lz4: the stream is too large");
    const int bytes = static_cast<int>(raw.bytes.size());
    Bytes encoded(static_cast<std::size_t>(LZ4_compressBound(bytes)));
    const int size = LZ4_compress_default(reinterpret_cast<const char*>(raw.bytes.data()),
                                          reinterpret_cast<char*>(encoded.data()), bytes,
                                          static_cast<int>(encoded.size()));
    if (size <= 0) die("lz4: compression failed");
    encoded.resize(static_cast<std::size_t>(size));
    return encoded;
  }
  void decode(std::span<const std::byte> encoded, Stream& raw) const override {
    const int size = LZ4_decompress_safe(
        reinterpret_cast<const char*>(encoded.data()), reinterpret_cast<char*>(raw.bytes.data()),
        static_cast<int>(encoded.size()), static_cast<int>(raw.bytes.size()));
    if (size < 0 || static_cast<std::size_t>(size) != raw.bytes.size())
      die("lz4: decompression failed");
  }
};

class Gzip final : public Pass {
 public:
  const char* name() const override { return "gzip"; }
  bool takes(const ElementType&) const override { return true; }
  Bytes encode(const Stream& raw) const override {
    uLongf size = compressBound(raw.bytes.size());
    Bytes encoded(size);
    if (compress2(reinterpret_cast<Bytef*>(encoded.data()), &size,
                  reinterpret_cast<const Bytef*>(raw.bytes.data()), raw.bytes.size(), 6) != Z_OK)
      die("zlib: compression failed");
    encoded.resize(size);
    return encoded;
  }
  void decode(std::span<const std::byte> encoded, Stream& raw) const override {
    uLongf size = raw.bytes.size();
    if (uncompress(reinterpret_cast<Bytef*>(raw.bytes.data()), &size,
                   reinterpret_cast<const Bytef*>(encoded.data()), encoded.size()) != Z_OK ||
        size != raw.bytes.size())
      die("zlib: decompression failed");
  }
};

}  // namespace

const Pass& fpc() {
  static const Fpc pass;
  return pass;
}
const Pass& fpzip() {
  static const Fpzip pass;
  return pass;
}
const Pass& lz() {
  static const Lz pass;
  return pass;
}
const Pass& gzip() {
  static const Gzip pass;
  return pass;
}

const Pass& first_pass_for(const ElementType& type, bool fpzip_for_doubles) {
  if (type.kind == ElementKind::f32) return fpzip();
  if (type.kind == ElementKind::f64) return fpzip_for_doubles ? fpzip() : fpc();
  return lz();
}

}  // namespace belay::bench
