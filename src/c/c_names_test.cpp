// SPDX-License-Identifier: Apache-2.0
// Names that try to leave the store, given by C: refused, or only names.
#include "c/c_session_test.hpp"

#include <functional>

namespace belay::c {
namespace {

const std::string k300Bytes(300, 'x');
const std::string kControl = "a\x1b[31m\nb";

class CNames : public CSessionTest {
 protected:
  /// Every call that takes the name of a region.
  void region_refused(const char* name) {
    int number = 0;
    belay_dynamic dynamic{};
    dynamic.view = [](size_t* count, void*) -> void* {
      *count = 0;
      return nullptr;
    };
    dynamic.resize = [](size_t, void*) -> void* { return nullptr; };
    belay_serializer serializer{};
    serializer.save = [](belay_writer*, void*) { return 0; };
    serializer.load = [](belay_reader*, void*) { return 0; };
    expect_refused(belay_protect(session(), name, &number, 1, BELAY_INT, 0, nullptr), {"region"});
    expect_refused(belay_protect_opaque(session(), name, &number, 1, 4, "t", 0, nullptr),
                   {"region"});
    expect_refused(belay_protect_dynamic(session(), name, dynamic, BELAY_INT), {"region"});
    expect_refused(belay_protect_dynamic_opaque(session(), name, dynamic, 4, "t"), {"region"});
    expect_refused(belay_protect_serialized(session(), name, serializer), {"region"});
    EXPECT_EQ(belay_unprotect(session(), name), BELAY_NOT_FOUND);
  }
  static void option_refused(const char* option, const std::string& value) {
    belay_options* const options = belay_options_new();
    belay_options_set(options, option, value.c_str());
    belay_session* opened = nullptr;
    expect_refused(belay_open(&opened, options), {option, "must be"});
    EXPECT_EQ(opened, nullptr);
    belay_options_free(options);
  }
};

TEST_F(CNames, ARegionNamedLikeAPathIsOnlyAName) {
  for (const char* name : {"../../../escaped", "/escaped"}) {
    int number = 7;
    EXPECT_EQ(belay_protect(session(), name, &number, 1, BELAY_INT, 0, nullptr), BELAY_OK);
    EXPECT_EQ(belay_checkpoint(session(), nullptr), BELAY_OK);
    EXPECT_EQ(belay_wait(session(), nullptr), BELAY_OK);
    number = 0;
    EXPECT_EQ(belay_restore(session(), nullptr, nullptr), BELAY_OK) << belay_message(session());
    EXPECT_EQ(number, 7);
    EXPECT_EQ(belay_unprotect(session(), name), BELAY_OK);
    EXPECT_FALSE(std::filesystem::exists("/escaped"));
  }
}

TEST_F(CNames, ARegionOf300BytesIsRefused) { region_refused(k300Bytes.c_str()); }
TEST_F(CNames, ARegionWithControlCharactersIsRefused) { region_refused(kControl.c_str()); }
TEST_F(CNames, AnApplicationOf300BytesIsRefused) { option_refused("application", k300Bytes); }
TEST_F(CNames, AnApplicationWithControlCharactersIsRefused) {
  option_refused("application", kControl);
}
TEST_F(CNames, ANodeThatIsAPathOr300BytesOrHasControlCharactersIsRefused) {
  for (const std::string& name :
       {std::string("../../up"), std::string("/etc"), k300Bytes, kControl})
    option_refused("node", name);
}
TEST_F(CNames, AStoreWithControlCharactersIsRefused) { option_refused("store", kControl); }

}  // namespace
}  // namespace belay::c
