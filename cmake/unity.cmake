# SPDX-License-Identifier: Apache-2.0
# The presets join several source files into one (CMAKE_UNITY_BUILD): headers are read once for all of
# them, and a build of everything takes little more than half as long. These are compiled by themselves
# all the same, most since their private names are those of other files in their folder. To build file by
# file, as is better after small changes: -DCMAKE_UNITY_BUILD=OFF.
set(belay_separate
    src/codec/kernels_avx2.cpp
    src/codec/kernels_plain.cpp
    src/codec/kernels_test.cpp
    src/codec/leads.cpp
    src/codec/residuals_test.cpp
    src/codec/sampling.cpp
    src/codec/zstd.cpp
    src/comm/exchange_check.cpp # install.cmake picks its object, and those of src/os
    src/dedup/plan_properties_test.cpp
    src/dedup/replication_plan.cpp
    src/files/layout_wire.cpp
    src/files/netcdf_layout.cpp
    src/files/set_base.cpp
    src/files/sources.cpp
    src/files/step_pattern.cpp
    src/files/unpack.cpp
    src/files/variable_reader.cpp
    src/format/manifest_test.cpp
    src/format/run_record.cpp
    src/format/run_record_test.cpp
    src/format/segment.cpp
    src/format/segment_test.cpp
    src/inspect/file_rebuild.cpp
    src/inspect/shard_audit.cpp
    src/inspect/store_scan.cpp
    src/os/errno.cpp
    src/os/memory.cpp
    src/os/posix_file.cpp
    src/os/posix_files.cpp
    src/session/range_rebuild.cpp
    src/session/range_server.cpp
    src/session/ranks_test.cpp
    src/session/replicas_test.cpp
    src/session/version_capture.cpp
    src/session/voyage_test.cpp
    src/vote/publish.cpp
    tools/belay/machine/bench_memory.cpp
    tools/belay/machine/doctor_place.cpp
    tools/belay/rehearse/fingerprint_lists.cpp
    tools/belay/rehearse/rehearsal.cpp
    tools/belay/rehearse/rehearse.cpp
    tools/belay/store/check.cpp
    tools/belay/store/extract.cpp
    tools/belay/store/extract_hdf5.cpp)
list(TRANSFORM belay_separate PREPEND ${PROJECT_SOURCE_DIR}/)
# Properties of files belong to a directory: those that bring subdirectories ask for them there.
macro(belay_separate_here)
  set_source_files_properties(${belay_separate} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endmacro()
belay_separate_here()
