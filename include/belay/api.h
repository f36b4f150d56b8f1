/* SPDX-License-Identifier: Apache-2.0 */
/* BELAY_API marks what the shared library shows; everything else in it is hidden. */
#ifndef BELAY_API_H
#define BELAY_API_H

#if defined(__GNUC__)
#define BELAY_API __attribute__((visibility("default")))
#else
#define BELAY_API
#endif

#endif
