// SPDX-License-Identifier: Apache-2.0
// Threads that leave signals to those of the application.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace belay::os {

/// While it lives, threads that are started inherit a mask that blocks every signal but a few: the
/// program's handlers must not run on a thread that it does not know of.
class SignalsBlocked {
 public:
  explicit SignalsBlocked(std::initializer_list<int> but = {}) {
    sigset_t all;
    ::sigfillset(&all);
    for (const int signal : but) ::sigdelset(&all, signal);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace belay::os
