/* SPDX-License-Identifier: Apache-2.0 */
/* Belay for C99 and C++: checkpoints of named memory that survive a kill at any instant.
 *
 *   belay_session* session = NULL;
 *   if (belay_open(&session, NULL)) return fail(session);
 *   belay_protect(session, "step", &step, 1, BELAY_INT, 0, NULL);
 *   belay_protect(session, "grid", grid, rows * cols, BELAY_DOUBLE, 2, (size_t[]){rows, cols});
 *   if (belay_latest(session) && belay_restore(session, NULL, NULL)) return fail(session);
 *   while (step < last) {
 *     advance();
 *     ++step;                                    // what is saved is what comes back
 *     if (belay_due(session)) belay_checkpoint(session, NULL);
 *   }
 *   if (belay_close(session)) return fail(session);
 *   belay_free(session);
 *
 * where fail() prints belay_message(session). Programs with MPI include <belay/mpi.h> as well and
 * call belay_open_mpi(). This is <belay/belay.hpp> for C: the same sessions, stores and rules.
 *
 * Results. A call that does something returns BELAY_OK, which is 0, or why it failed;
 * belay_message() has the text. A question (belay_latest, belay_due, belay_is_head) returns its
 * answer. Nothing prints, exits, aborts or throws. A null pointer where something is needed is
 * BELAY_INVALID_ARGUMENT; `belay_version*` and `size_t* count` may be null where the number is not
 * wanted.
 *
 * Ownership. Belay copies every string that it is given. Memory that is protected stays the
 * program's and must live until belay_unprotect() or belay_free(); so must what `user` points to.
 * Strings that Belay returns are Belay's; each call says how long they are valid.
 *
 * Threads. One thread at a time calls with the same session. Calls marked collective are made by
 * every rank, in the same order. Functions of the program are called by the thread that called
 * Belay, but for log functions, which any thread may call. They may be C++ and throw: that is an
 * error like any other. They must not leave by longjmp, nor call Belay with the same session.
 *
 * Growth. Structures begin with their size, which the program sets, so that later versions of
 * Belay can add members: belay_stats stats = {.size = sizeof stats};
 */
#ifndef BELAY_BELAY_H
#define BELAY_BELAY_H

#include <belay/api.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Results ---------------------------------------------------------------------------------*/

enum belay_code {
  BELAY_OK = 0,
  BELAY_NOT_FOUND = 1,        /* the version, region or store does not exist */
  BELAY_CORRUPTION = 2,       /* bytes were read that are not what was written */
  BELAY_IO = 3,               /* the operating system refused to read or write */
  BELAY_NO_SPACE = 4,         /* a device, quota, limit or memory is full */
  BELAY_UNSUPPORTED = 5,      /* this build, kernel or stage cannot do it */
  BELAY_INVALID_ARGUMENT = 6, /* the call, option or name is wrong */
  BELAY_PEER_LOST = 7,        /* another rank did not answer within `timeout` */
  BELAY_BUSY = 8              /* another process uses the store */
};

/* One group of ranks with one store. Several may coexist. */
typedef struct belay_session belay_session;
/* A checkpoint's number: 1, 2, 3, ...; 0 is none. */
typedef uint64_t belay_version;

/* What went wrong in the last call with this session that failed, where, why, and what can be done
 * about it. NULL: in the last call of this thread that failed, with whatever session, or with none
 * as a failed belay_open(). Empty if nothing failed yet. Valid until the next failure. */
BELAY_API const char* belay_message(const belay_session* session);
/* "ok", "not_found", ...; "unknown" for other numbers. Valid forever. */
BELAY_API const char* belay_code_name(int code);

/* ---- Options ---------------------------------------------------------------------------------*/

/* What code sets wins over BELAY_* environment variables, which win over the TOML file named by
 * BELAY_CONFIG, which wins over the defaults. With none at all Belay works. */
typedef struct belay_options belay_options;

/* NULL: no memory. */
BELAY_API belay_options* belay_options_new(void);
/* Names and values are those of <belay/options.hpp>: "store", "keep", "interval", ... with the text
 * that the environment would hold: "/scratch/run7", "3", "10m". A null value unsets the option.
 * A wrong name fails here, a wrong value when the session is opened. */
BELAY_API int belay_options_set(belay_options* options, const char* name, const char* value);

enum belay_log_level { BELAY_LOG_ERROR, BELAY_LOG_WARN, BELAY_LOG_INFO, BELAY_LOG_DEBUG };
/* `text` is valid during the call. Any thread may call, one at a time. */
typedef void (*belay_log_function)(int level, const char* text, void* user);
/* Receives messages up to the option `log`. NULL: nobody does. */
BELAY_API int belay_options_on_log(belay_options* options, belay_log_function log, void* user);
/* The session that was opened with them does not need them any more. NULL is left alone. */
BELAY_API void belay_options_free(belay_options* options);

/* ---- Life of a session -----------------------------------------------------------------------*/

/* Opens or creates a store for a program of one process. `options` may be null. After a failure
 * *session is null, and belay_message(NULL) has the text. */
BELAY_API int belay_open(belay_session** session, const belay_options* options);
/* Collective. Waits until nothing is in flight. *newest: the newest existing version, 0 if none.
 * Returns the first failure that was not reported yet, also of calls whose result was ignored. */
BELAY_API int belay_wait(belay_session* session, belay_version* newest);
/* Collective. Waits, reports like belay_wait(), and releases the store. What is left of the session
 * answers belay_message(), belay_get_stats() and the like until belay_free(). */
BELAY_API int belay_close(belay_session* session);
/* Ends the session if it is not closed: without communicating; what was captured is still made
 * durable, but failures go only to the log. NULL is left alone. */
BELAY_API void belay_free(belay_session* session);

/* ---- Regions ---------------------------------------------------------------------------------*/

/* What a region's elements are: one of the constants below. A number, so that a wrong one can be
 * refused. */
typedef int belay_type;
enum {
  BELAY_BYTES = 0,
  BELAY_I8 = 1,
  BELAY_I16 = 2,
  BELAY_I32 = 3,
  BELAY_I64 = 4,
  BELAY_U8 = 5,
  BELAY_U16 = 6,
  BELAY_U32 = 7,
  BELAY_U64 = 8,
  BELAY_F32 = 9,
  BELAY_F64 = 10,
  BELAY_C64 = 11,       /* float _Complex */
  BELAY_C128 = 12,      /* double _Complex */
  BELAY_OPAQUE = 13,    /* structures; see belay_protect_opaque() */
  BELAY_SERIALIZED = 14 /* what a save function wrote; see belay_protect_serialized() */
};

/* The types of C by the name that they have there. */
#define BELAY_CHAR ((char)-1 < 0 ? BELAY_I8 : BELAY_U8)
#define BELAY_INT BELAY_I32
#define BELAY_LONG (sizeof(long) == 8 ? BELAY_I64 : BELAY_I32)
#define BELAY_SIZE_T (sizeof(size_t) == 8 ? BELAY_U64 : BELAY_U32)
#define BELAY_FLOAT BELAY_F32
#define BELAY_DOUBLE BELAY_F64

/* Names `count` elements of memory. The name is the region's identity across versions and restarts;
 * naming it again moves the region to the new memory. Extents are slowest first, and their product
 * is `count`. Without any (`dimensions` 0) one element is a value, and several are an array of one
 * dimension. */
BELAY_API int belay_protect(belay_session* session, const char* name, void* memory, size_t count,
                            belay_type type, size_t dimensions, const size_t* extents);

/* The same for structures without pointers. `type_name` (may be null) is part of the region's type:
 * restoring under another name is an error. */
BELAY_API int belay_protect_opaque(belay_session* session, const char* name, void* memory,
                                   size_t count, size_t type_bytes, const char* type_name,
                                   size_t dimensions, const size_t* extents);

/* Memory that grows, shrinks and moves. */
typedef struct belay_dynamic {
  /* Where the elements are now; puts their number into *count. May be called at any time. */
  void* (*view)(size_t* count, void* user);
  /* Makes room for `count` elements when a version is restored, and says where it is. Null, if
   * `count` is not 0: there is no memory, and the restore fails. */
  void* (*resize)(size_t count, void* user);
  void* user;
} belay_dynamic;

/* Names an array of one dimension whose place and length are asked for at each checkpoint. */
BELAY_API int belay_protect_dynamic(belay_session* session, const char* name, belay_dynamic memory,
                                    belay_type type);
BELAY_API int belay_protect_dynamic_opaque(belay_session* session, const char* name,
                                           belay_dynamic memory, size_t type_bytes,
                                           const char* type_name);

/* Only during a call of a save or load function. */
typedef struct belay_writer belay_writer;
typedef struct belay_reader belay_reader;

/* Data of any form, as two functions that return 0 if they succeed. A save function that fails
 * fails its version, a load function that fails its restore. */
typedef struct belay_serializer {
  int (*save)(belay_writer* writer, void* user);
  int (*load)(belay_reader* reader, void* user);
  void* user;
} belay_serializer;

/* Names what `save` writes and `load` reads back. */
BELAY_API int belay_protect_serialized(belay_session* session, const char* name,
                                       belay_serializer serializer);
BELAY_API int belay_write(belay_writer* writer, const void* bytes, size_t count);
/* Reading past the end yields zeros and fails, and so does then the restore. */
BELAY_API int belay_read(belay_reader* reader, void* into, size_t count);
/* Bytes that were not read yet. */
BELAY_API size_t belay_remaining(const belay_reader* reader);

BELAY_API int belay_unprotect(belay_session* session, const char* name);

/* ---- Checkpoint and restore ------------------------------------------------------------------*/

/* The newest version that can be restored, or 0. It is 0 only on a first start: where a version
 * existed and is damaged, this names it and belay_restore() says what is wrong with it. */
BELAY_API belay_version belay_latest(const belay_session* session);

typedef struct belay_restore_options {
  size_t size;                /* sizeof(belay_restore_options) */
  belay_version version;      /* 0: the newest that all ranks can restore */
  const char* const* regions; /* only these; null: every protected region */
  size_t region_count;
  int allow_missing; /* not 0: leave regions alone that the version does not have */
  int allow_resized; /* not 0: fill as many bytes as both sides have */
} belay_restore_options;

/* Collective. Fills the protected regions from a version, every byte verified. `options` may be
 * null. After an error the contents of the regions are unspecified, but no version was lost; after
 * falling back from a damaged version so are those of regions that the older one does not have. */
BELAY_API int belay_restore(belay_session* session, const belay_restore_options* options,
                            belay_version* restored);

/* Collective. Not 0: it is time for a checkpoint. Rank 0 decides; the first call says yes. */
BELAY_API int belay_due(belay_session* session);
/* Collective. Captures all regions as a new version; it becomes durable in the background. Nobody
 * may write protected memory until it returns. *version: the new version, or with `late = skip`
 * that which is still in flight. */
BELAY_API int belay_checkpoint(belay_session* session, belay_version* version);

/* Incremental completion: begin and commit are collective, add is not. A region may be written
 * again as soon as its belay_add() has returned. belay_commit() captures what was not added. */
BELAY_API int belay_begin(belay_session* session);
BELAY_API int belay_add(belay_session* session, const char* name);
BELAY_API int belay_commit(belay_session* session, belay_version* version);

/* Collective. Saves buffers as a version of their own, on `copies` nodes each, and returns when it
 * is durable and exists. They may differ in number and size between ranks, be empty, and overlap.
 * `keep` neither counts nor retires it, belay_latest() and belay_restore() never choose it. */
BELAY_API int belay_dump(belay_session* session, const void* const* buffers, const size_t* bytes,
                         size_t count, int copies, belay_version* version);
/* Collective. Fills buffers of the same number and sizes with what belay_dump() has saved, every
 * byte verified. */
BELAY_API int belay_load(belay_session* session, belay_version version, void* const* buffers,
                         const size_t* bytes, size_t count);
/* With background = head some processes of each node compute nothing and do the background work of
 * the others: if (belay_is_head(s)) return belay_serve(s); The latter works until the application
 * has closed its session, and returns 0, or another value if a rank or another head was lost. */
BELAY_API int belay_is_head(const belay_session* session);
BELAY_API int belay_serve(belay_session* session);

/* ---- What there is, and what it cost ---------------------------------------------------------*/

/* Where the bytes and the time of one version on one rank went. It balances:
 *   protected_bytes = untouched + unchanged + duplicate_here + duplicate_elsewhere + written
 *   blocking_ns     = settle_ns + detect_ns + stage_ns + wait_ns */
typedef struct belay_ledger {
  size_t size; /* sizeof(belay_ledger) */
  belay_version version;
  uint64_t protected_bytes;
  uint64_t untouched_bytes;           /* a tracker says: not written since */
  uint64_t unchanged_bytes;           /* same fingerprint in the same place */
  uint64_t duplicate_here_bytes;      /* this rank's store holds the block already */
  uint64_t duplicate_elsewhere_bytes; /* enough other nodes hold it */
  uint64_t written_bytes;             /* raw bytes of blocks put into the segment */
  uint64_t carried_bytes;             /* of written: unchanged, but moved out of an old segment */
  uint64_t encoded_bytes;             /* what written_bytes became in the segment */
  uint64_t file_bytes;                /* everything that went to files: segment, index, manifest */
  uint64_t settle_ns;                 /* waiting for the former version and agreeing on it */
  uint64_t detect_ns;                 /* fingerprinting and looking up */
  uint64_t stage_ns;                  /* copying unsafe blocks */
  uint64_t wait_ns;                   /* staging was full (or the work is done inline) */
  uint64_t blocking_ns;               /* from entry to return of belay_checkpoint() */
  uint64_t durable_ns; /* from entry of belay_checkpoint() until this rank has voted */
} belay_ledger;

/* This rank's view of a session. Sums are over the session's life. */
typedef struct belay_stats {
  size_t size;              /* sizeof(belay_stats) */
  uint64_t captured;        /* versions captured */
  uint64_t existing;        /* of those, known to exist */
  uint64_t failed;          /* of those, known not to exist */
  uint64_t skipped;         /* checkpoints that `late = skip` left out */
  uint64_t table_bytes;     /* memory of fingerprints and their index */
  uint64_t staging_bytes;   /* memory of staging */
  uint64_t hash_threads;    /* threads that fingerprint during capture */
  const char* last_failure; /* why the newest failed version failed; "" if none did. Valid until
                               the next belay_get_stats() with this session */
  uint64_t sent_bytes;      /* of blocks that went to other ranks, to be kept there */
  uint64_t kept_bytes;      /* of other ranks' blocks that came here to be kept */
  size_t codec_count;       /* for belay_codec_at() */
} belay_stats;

/* What became of one variable: with which codec, how small, and how fast. */
typedef struct belay_codec_use {
  size_t size;          /* sizeof(belay_codec_use) */
  const char* tier;     /* "local" or "global" */
  const char* variable; /* a region's name; on the global tier of all ranks that share a file */
  const char* codec;
  uint64_t raw_bytes;
  uint64_t encoded_bytes;
  uint64_t encode_ns;
} belay_codec_use;

BELAY_API int belay_get_stats(belay_session* session, belay_stats* stats);
/* Of those that the last belay_get_stats() with this session has counted; valid until the next. */
BELAY_API int belay_codec_at(belay_session* session, size_t place, belay_codec_use* use);
/* Of the newest version that was captured; sums over all captured versions. */
BELAY_API int belay_last_ledger(belay_session* session, belay_ledger* ledger);
BELAY_API int belay_total_ledger(belay_session* session, belay_ledger* ledger);

/* A version that can be restored, as this rank holds it. */
typedef struct belay_version_info {
  size_t size; /* sizeof(belay_version_info) */
  belay_version version;
  uint64_t run;
  belay_version parent; /* 0: none */
  int64_t time_ns;      /* when it was captured, since 1970 */
  size_t region_count;  /* of this rank */
  const char* level;    /* "local", "replicas:2", "erasure:4+2"; "+global" if there too */
} belay_version_info;

typedef struct belay_region_info {
  size_t size; /* sizeof(belay_region_info) */
  const char* name;
  belay_type type;
  size_t type_bytes;     /* of one element */
  const char* type_name; /* of an opaque type, where the program gave one; else "" */
  size_t dimensions;
  const uint64_t* extents;
  uint64_t bytes;
} belay_region_info;

/* Looks at the versions that every rank can restore, newest first, and says how many there are. The
 * three calls below tell about those that were seen then, by their place in that list; what they
 * give is valid until the next belay_versions() with this session. */
BELAY_API int belay_versions(belay_session* session, size_t* count);
BELAY_API int belay_version_at(belay_session* session, size_t place, belay_version_info* info);
BELAY_API int belay_region_at(belay_session* session, size_t place, size_t region,
                              belay_region_info* info);
BELAY_API int belay_ledger_at(belay_session* session, size_t place, belay_ledger* ledger);

#ifdef __cplusplus
}
#endif

#endif
