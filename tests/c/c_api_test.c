/* SPDX-License-Identifier: Apache-2.0 */
/* Everything in <belay/belay.h>, from C99. In an empty directory; exits with 0 if all is well. */
#include "check.h"

#include <complex.h>

typedef struct {
  double place[3];
  int id;
} particle;

/* A list that grows, as C programs have them. */
typedef struct {
  particle* items;
  size_t count;
  int calls_of_resize;
} particle_list;

static void* view_particles(size_t* count, void* user) {
  const particle_list* list = user;
  *count = list->count;
  return list->items;
}

static void* resize_particles(size_t count, void* user) {
  particle_list* list = user;
  ++list->calls_of_resize;
  particle* items = realloc(list->items, (count ? count : 1) * sizeof *items);
  if (items == NULL) return NULL;
  list->items = items;
  list->count = count;
  return items;
}

static belay_dynamic dynamic_particles(particle_list* list) {
  const belay_dynamic memory = {view_particles, resize_particles, list};
  return memory;
}

/* A text of any length, saved as its length and its letters. */
typedef struct {
  char* letters;
  int fails;
} text;

static int save_text(belay_writer* writer, void* user) {
  const text* saved = user;
  const uint64_t length = strlen(saved->letters);
  if (saved->fails) return 42;
  if (belay_write(writer, &length, sizeof length)) return 1;
  return belay_write(writer, saved->letters, length);
}

static int load_text(belay_reader* reader, void* user) {
  text* loaded = user;
  uint64_t length = 0;
  if (loaded->fails) return 43;
  if (belay_read(reader, &length, sizeof length)) return 1;
  CHECK(belay_remaining(reader) == length);
  free(loaded->letters);
  loaded->letters = calloc(length + 1, 1);
  return belay_read(reader, loaded->letters, length);
}

static belay_serializer serialized_text(text* of) {
  const belay_serializer serializer = {save_text, load_text, of};
  return serializer;
}

typedef struct {
  int step;
  double grid[6];
  float _Complex waves[2];
  particle leader;
  particle_list crowd;
  text title;
} program;

static void protect_all(belay_session* session, program* of) {
  const size_t extents[] = {2, 3};
  MUST(belay_protect(session, "step", &of->step, 1, BELAY_INT, 0, NULL));
  MUST(belay_protect(session, "grid", of->grid, 6, BELAY_DOUBLE, 2, extents));
  MUST(belay_protect(session, "waves", of->waves, 2, BELAY_C64, 0, NULL));
  MUST(belay_protect_opaque(session, "leader", &of->leader, 1, sizeof(particle), "particle", 0,
                            NULL));
  MUST(belay_protect_dynamic_opaque(session, "crowd", dynamic_particles(&of->crowd),
                                    sizeof(particle), NULL));
  MUST(belay_protect_serialized(session, "title", serialized_text(&of->title)));
}

static belay_session* open_store(const char* store) {
  belay_session* session = NULL;
  belay_options* options = belay_options_new();
  CHECK(options != NULL);
  MUST(belay_options_set(options, "store", store));
  MUST(belay_options_set(options, "keep", "100"));
  MUST(belay_options_set(options, "block", "512"));
  MUST(belay_open(&session, options));
  belay_options_free(options);
  CHECK(session != NULL);
  return session;
}

static void close_and_free(belay_session* session) {
  MUST(belay_close(session));
  belay_free(session);
}

static char* copy_of(const char* letters) { return strcpy(malloc(strlen(letters) + 1), letters); }

static void every_kind_of_region_comes_back(void) {
  program saved = {.step = 7,
                   .grid = {1, 2, 3, 4, 5, 6},
                   .waves = {1.5f, 2.5f},
                   .leader = {{0.1, 0.2, 0.3}, 9},
                   .title = {copy_of("heat"), 0}};
  resize_particles(1000, &saved.crowd);
  memset(saved.crowd.items, 0, 1000 * sizeof(particle));
  saved.crowd.items[999].id = 999;
  belay_version version = 0;
  {
    belay_session* session = open_store("regions");
    CHECK(belay_latest(session) == 0);
    protect_all(session, &saved);
    CHECK(belay_due(session));
    MUST(belay_checkpoint(session, &version));
    CHECK(version == 1);
    resize_particles(2000, &saved.crowd);
    memset(saved.crowd.items, 1, 2000 * sizeof(particle));
    free(saved.title.letters);
    saved.title.letters = copy_of("a longer title");
    saved.step = 8;
    MUST(belay_checkpoint(session, &version));
    belay_version newest = 0;
    MUST(belay_wait(session, &newest));
    CHECK(newest == version);
    close_and_free(session);
  }
  program found = {.title = {copy_of(""), 0}};
  belay_session* session = open_store("regions");
  CHECK(belay_latest(session) == version);
  protect_all(session, &found);
  belay_version restored = 0;
  MUST(belay_restore(session, NULL, &restored));
  CHECK(restored == version && found.step == 8);
  CHECK(memcmp(found.grid, saved.grid, sizeof found.grid) == 0);
  CHECK(found.waves[1] == 2.5f && found.leader.id == 9);
  CHECK(found.crowd.count == 2000 && found.crowd.calls_of_resize == 1);
  CHECK(memcmp(found.crowd.items, saved.crowd.items, 2000 * sizeof(particle)) == 0);
  CHECK(strcmp(found.title.letters, "a longer title") == 0);

  /* An older version, and then one region of the newer. */
  MUST(belay_restore(session,
                     &(belay_restore_options){.size = sizeof(belay_restore_options), .version = 1},
                     &restored));
  CHECK(restored == 1 && found.step == 7 && found.crowd.count == 1000);
  CHECK(found.crowd.items[999].id == 999);
  const char* const only[] = {"step"};
  MUST(belay_restore(session,
                     &(belay_restore_options){
                         .size = sizeof(belay_restore_options), .regions = only, .region_count = 1},
                     NULL));
  CHECK(found.step == 8 && found.crowd.count == 1000);
  close_and_free(session);
  free(saved.crowd.items), free(found.crowd.items);
  free(saved.title.letters), free(found.title.letters);
}

static void regions_that_do_not_fit_are_refused_unless_allowed(void) {
  int numbers[4] = {1, 2, 3, 4};
  int extra = 5;
  belay_session* session = open_store("sizes");
  MUST(belay_protect(session, "numbers", numbers, 4, BELAY_INT, 0, NULL));
  MUST(belay_checkpoint(session, NULL));
  memset(numbers, 0, sizeof numbers);
  MUST(belay_protect(session, "numbers", numbers, 2, BELAY_INT, 0, NULL));
  MUST(belay_protect(session, "extra", &extra, 1, BELAY_INT, 0, NULL));
  REFUSED(belay_restore(session, NULL, NULL), BELAY_NOT_FOUND, "'extra'");
  belay_restore_options allow = {.size = sizeof allow, .allow_missing = 1};
  REFUSED(belay_restore(session, &allow, NULL), BELAY_INVALID_ARGUMENT, "16 bytes");
  allow.allow_resized = 1;
  MUST(belay_restore(session, &allow, NULL));
  CHECK(numbers[0] == 1 && numbers[1] == 2 && numbers[2] == 0 && extra == 5);
  allow.size = offsetof(belay_restore_options, allow_resized); /* as if it had been unknown */
  REFUSED(belay_restore(session, &allow, NULL), BELAY_INVALID_ARGUMENT, "16 bytes");
  MUST(belay_unprotect(session, "extra"));
  REFUSED(belay_unprotect(session, "extra"), BELAY_NOT_FOUND, "extra");
  REFUSED(belay_close(session), BELAY_NOT_FOUND, "extra"); /* ignored failures come back */
  belay_free(session);
}

static void versions_and_figures_can_be_read(void) {
  double field[300] = {1};
  const size_t extents[] = {3, 100};
  belay_session* session = open_store("figures");
  MUST(belay_protect(session, "field", field, 300, BELAY_F64, 2, extents));
  MUST(belay_checkpoint(session, NULL));
  field[0] = 2;
  MUST(belay_begin(session));
  MUST(belay_add(session, "field"));
  field[0] = 3; /* may be written again */
  belay_version version = 0;
  MUST(belay_commit(session, &version));
  MUST(belay_wait(session, NULL));

  size_t count = 0;
  MUST(belay_versions(session, &count));
  CHECK(count == 2);
  belay_version_info info = {.size = sizeof info};
  MUST(belay_version_at(session, 0, &info));
  CHECK(info.version == version && info.parent == 1 && info.run == 1 && info.time_ns > 0);
  CHECK(info.region_count == 1 && info.size == sizeof info);
  belay_region_info region = {.size = sizeof region};
  MUST(belay_region_at(session, 0, 0, &region));
  CHECK(strcmp(region.name, "field") == 0 && region.type == BELAY_F64 && region.type_bytes == 8);
  CHECK(region.dimensions == 2 && region.extents[1] == 100 && region.bytes == sizeof field);
  CHECK(strcmp(region.type_name, "") == 0);
  belay_ledger ledger = {.size = sizeof ledger};
  MUST(belay_ledger_at(session, 0, &ledger));
  CHECK(ledger.protected_bytes == sizeof field && ledger.written_bytes == 512);
  CHECK(ledger.protected_bytes ==
        ledger.unchanged_bytes + ledger.duplicate_here_bytes + ledger.written_bytes);
  REFUSED(belay_version_at(session, 2, &info), BELAY_NOT_FOUND, "found 2");
  REFUSED(belay_region_at(session, 1, 1, &region), BELAY_NOT_FOUND, "version 1 has 1");

  belay_stats stats = {.size = sizeof stats};
  MUST(belay_get_stats(session, &stats));
  CHECK(stats.captured == 2 && stats.existing == 2 && stats.failed == 0);
  CHECK(strcmp(stats.last_failure, "") == 0);
  MUST(belay_last_ledger(session, &ledger));
  CHECK(ledger.version == version);
  MUST(belay_total_ledger(session, &ledger));
  CHECK(ledger.protected_bytes == 2 * sizeof field);

  /* A program that was compiled when the structure was shorter: the rest is left alone. */
  belay_stats shorter = {.size = offsetof(belay_stats, existing), .existing = 77};
  MUST(belay_get_stats(session, &shorter));
  CHECK(shorter.captured == 2 && shorter.existing == 77);
  CHECK(shorter.size == offsetof(belay_stats, existing));
  close_and_free(session);
}

static void codecs_and_what_they_saved_can_be_read(void) {
  enum { kCount = 100000 };
  double* const field = calloc(kCount, sizeof *field);
  CHECK(field != NULL);
  for (int i = 0; i < kCount; ++i) field[i] = i / 100;
  belay_options* const options = belay_options_new();
  MUST(belay_options_set(options, "store", "codecs"));
  MUST(belay_options_set(options, "local_codec", "shuffle-zstd"));
  belay_session* session = NULL;
  MUST(belay_open(&session, options));
  belay_options_free(options);
  MUST(belay_protect(session, "field", field, kCount, BELAY_F64, 0, NULL));
  MUST(belay_checkpoint(session, NULL));
  MUST(belay_wait(session, NULL));
  belay_stats stats = {.size = sizeof stats};
  MUST(belay_get_stats(session, &stats));
  CHECK(stats.codec_count == 1 && stats.sent_bytes == 0 && stats.kept_bytes == 0);
  belay_codec_use use = {.size = sizeof use};
  MUST(belay_codec_at(session, 0, &use));
  CHECK(strcmp(use.tier, "local") == 0 && strcmp(use.variable, "field") == 0);
  CHECK(strcmp(use.codec, "shuffle-zstd") == 0);
  CHECK(use.raw_bytes == kCount * sizeof *field && use.encoded_bytes < use.raw_bytes / 4);
  REFUSED(belay_codec_at(session, 1, &use), BELAY_NOT_FOUND, "found 1");
  REFUSED(belay_codec_at(session, 0, NULL), BELAY_INVALID_ARGUMENT, "no place");
  (void)belay_close(session); /* which tells again what was refused */
  belay_free(session);
  free(field);
}

static void functions_that_fail_fail_their_version_or_restore(void) {
  text title = {copy_of("title"), 0};
  belay_session* session = open_store("functions");
  MUST(belay_protect_serialized(session, "title", serialized_text(&title)));
  MUST(belay_checkpoint(session, NULL));
  MUST(belay_wait(session, NULL));
  title.fails = 1;
  REFUSED(belay_checkpoint(session, NULL), BELAY_INVALID_ARGUMENT, "returned 42");
  REFUSED(belay_restore(session, NULL, NULL), BELAY_INVALID_ARGUMENT, "returned 43");
  title.fails = 0;
  MUST(belay_restore(session, NULL, NULL));
  CHECK(strcmp(title.letters, "title") == 0);
  belay_free(session); /* not closed: it ends all the same */
  free(title.letters);
}

typedef struct {
  int lines;
  int worst;
} heard;

static void hear(int level, const char* line, void* user) {
  heard* ears = user;
  CHECK(strlen(line) > 0);
  ++ears->lines;
  if (level < ears->worst) ears->worst = level;
}

static void options_are_checked_and_the_log_is_heard(void) {
  heard ears = {0, BELAY_LOG_DEBUG};
  int number = 1;
  belay_session* session = NULL;
  belay_options* options = belay_options_new();
  REFUSED(belay_options_set(options, "stroe", "x"), BELAY_INVALID_ARGUMENT, "did you mean store");
  MUST(belay_options_set(options, "store", "options"));
  MUST(belay_options_set(options, "log", "info"));
  MUST(belay_options_on_log(options, hear, &ears));
  MUST(belay_options_set(options, "keep", "none"));
  REFUSED(belay_open(&session, options), BELAY_INVALID_ARGUMENT, "keep");
  CHECK(session == NULL && strstr(belay_message(session), "keep") != NULL);
  MUST(belay_options_set(options, "keep", NULL));
  MUST(belay_open(&session, options));
  belay_options_free(options);
  MUST(belay_protect(session, "number", &number, 1, BELAY_INT, 0, NULL));
  MUST(belay_checkpoint(session, NULL));
  close_and_free(session);
  CHECK(ears.lines > 0 && ears.worst == BELAY_LOG_INFO);
}

static void buffers_are_dumped_and_loaded(void) {
  char bytes[8] = "seven b";
  char more[3] = "ab";
  char found[8] = {0};
  char found_more[3] = {0};
  const void* const out[] = {bytes, NULL, more};
  void* const in[] = {found, NULL, found_more};
  const size_t sizes[] = {sizeof bytes, 0, sizeof more};
  belay_version version = 9;
  belay_session* session = open_store("dumps");
  MUST(belay_dump(session, out, sizes, 3, 1, &version));
  CHECK(version == 1);
  MUST(belay_load(session, version, in, sizes, 3));
  CHECK(memcmp(bytes, found, sizeof bytes) == 0 && memcmp(more, found_more, sizeof more) == 0);
  close_and_free(session);
  session = open_store("dumps");
  REFUSED(belay_dump(session, out, sizes, 3, 2, &version), BELAY_INVALID_ARGUMENT, "2 nodes");
  CHECK(version == 0);
  REFUSED(belay_load(session, 1, in, sizes, 2), BELAY_INVALID_ARGUMENT, "has 3 buffers");
  REFUSED(belay_load(session, 7, in, sizes, 3), BELAY_NOT_FOUND, "no version 7");
  CHECK(!belay_is_head(session) && belay_serve(session) == 0);
  belay_free(session);
}

int main(void) {
  every_kind_of_region_comes_back();
  regions_that_do_not_fit_are_refused_unless_allowed();
  versions_and_figures_can_be_read();
  codecs_and_what_they_saved_can_be_read();
  functions_that_fail_fail_their_version_or_restore();
  options_are_checked_and_the_log_is_heard();
  buffers_are_dumped_and_loaded();
  return 0;
}
