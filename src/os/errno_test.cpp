// SPDX-License-Identifier: Apache-2.0
#include "os/errno.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace belay::os {
namespace {

TEST(Errno, EachNumberHasItsCode) {
  for (const int error : {ENOSPC, EDQUOT, EFBIG}) EXPECT_EQ(code_of(error), Code::no_space);
  for (const int error : {ENOENT, ENOTDIR}) EXPECT_EQ(code_of(error), Code::not_found);
  for (const int error : {EEXIST, EWOULDBLOCK}) EXPECT_EQ(code_of(error), Code::busy);
  for (const int error : {EOPNOTSUPP, ENOSYS}) EXPECT_EQ(code_of(error), Code::unsupported);
  EXPECT_EQ(code_of(EINVAL), Code::invalid_argument);
  for (const int error : {EACCES, EPERM, EROFS, EIO, EBADF, EMFILE, 12345})
    EXPECT_EQ(code_of(error), Code::io);
}

TEST(Errno, MessageNamesOperationPathReasonAndRemedy) {
  const Error error = error_of(ENOSPC, "write", "/scratch/x");
  EXPECT_EQ(error.code(), Code::no_space);
  EXPECT_EQ(error.message(),
            "write /scratch/x: No space left on device (free space or point `store` elsewhere)");
  EXPECT_EQ(error_of(ENOENT, "open", "x").message(), "open x: No such file or directory");
}

TEST(Errno, OwnerOfALockIsMadePrintableAndCutShort) {
  EXPECT_EQ(lock_held("host a, pid 12\n").message(), "host a, pid 12");
  EXPECT_EQ(lock_held("a\x1b[31m\nb\xff").message(), "a?[31m?b?");
  EXPECT_EQ(lock_held(std::string(5000, 'x')).message(), std::string(kOwnerBytes, 'x'));
  EXPECT_FALSE(lock_held("").message().empty());
  EXPECT_EQ(lock_held("").code(), Code::busy);
}

}  // namespace
}  // namespace belay::os
