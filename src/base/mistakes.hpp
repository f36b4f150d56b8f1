// SPDX-License-Identifier: Apache-2.0
// Mistakes that a test build can make on purpose, to prove that the suite would notice. In any
// other build planted() is a constant false and costs nothing.
#pragma once

namespace belay {

enum class Mistake {
  none,
  skip_data_sync,       ///< a segment is not fsynced before the vote
  skip_directory_sync,  ///< a rename is not made durable
  vote_early,           ///< the manifest is published before the segment is durable
  keep_failed,          ///< fingerprints of a version that does not exist are believed
  forget_dirty,         ///< the dirty set of a failed version is dropped
  agree_on_maximum,     ///< "newest" is what any rank has, not what all have
  reuse_version,        ///< a number is taken again after a failure
  delete_early,         ///< a version is deleted before its successor exists everywhere
  skip_verification,    ///< one block read at restore is not verified
  skip_copy_sync,       ///< copies and shards kept for others are not fsynced before the vote
  one_copy_less,        ///< each block is on one node less than was asked for
  skip_healing,         ///< what a lost node held is believed to be there
  drain_early,          ///< a manifest is on the global tier before the blocks that it names
  delete_needed,        ///< ranks remove what they keep for others without asking them
  remove_early,         ///< blocks go while manifests that count on them can be seen elsewhere
  wrong_parity,         ///< a part of a member is left out of the parity
  one_shard_less,       ///< one of the shards that a rank keeps is missing
  delete_member,        ///< a member goes that only the rest of its stripe counts on
};

#ifdef BELAY_PLANT_MISTAKES
/// Chosen by BELAY_MISTAKE in the environment or plant(); one at a time.
bool planted(Mistake mistake);
void plant(Mistake mistake);
#else
constexpr bool planted(Mistake) { return false; }
#endif

}  // namespace belay
