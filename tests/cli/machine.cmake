# SPDX-License-Identifier: Apache-2.0
# Tests of the commands that look at this machine and at programs: doctor, bench, rehearse.
find_program(belay_system_python python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

add_executable(rehearsed rehearsed.cpp)
target_link_libraries(rehearsed PRIVATE Belay::belay belay_warnings Threads::Threads)
set(belay_rehearsed_ranks)
if(MPI_CXX_FOUND)
  add_executable(rehearsed_ranks rehearsed_ranks.cpp)
  target_link_libraries(rehearsed_ranks PRIVATE Belay::mpi belay_warnings Threads::Threads)
  set(belay_rehearsed_ranks $<TARGET_FILE:rehearsed_ranks>)
endif()

foreach(command rehearse doctor bench)
  add_test(NAME cli.${command} COMMAND ${belay_system_python} -B
                                       ${CMAKE_CURRENT_SOURCE_DIR}/${command}_test.py)
  set_tests_properties(
    cli.${command}
    PROPERTIES
      LABELS cli
      TIMEOUT 180
      ENVIRONMENT
      "BELAY_TOOL=$<TARGET_FILE:belay_tool>;REHEARSED=$<TARGET_FILE:rehearsed>;REHEARSED_RANKS=${belay_rehearsed_ranks};MPIEXEC=${MPIEXEC_EXECUTABLE};EXAMPLES=$<TARGET_FILE_DIR:quickstart>;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1"
  )
endforeach()
