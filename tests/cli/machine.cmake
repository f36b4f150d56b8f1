# SPDX-License-Identifier: Apache-2.0
# Tests of the commands that look at this machine and at programs: doctor, bench, rehearse.
find_program(belay_system_python python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

add_executable(rehearsed rehearsed.cpp)
target_link_libraries(rehearsed PRIVATE Belay::belay belay_warnings Threads::Threads)
set(belay_forgetful_heat2d)
if(MPI_CXX_FOUND)
  # The example with the usual mistake: a flame that flickers by chance, whose state is forgotten.
  set(heat2d ${PROJECT_SOURCE_DIR}/examples/heat2d.cpp)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${heat2d})
  file(READ ${heat2d} right)
  string(
    REPLACE
      "std::swap(field, next);"
      "std::swap(field, next);
    static unsigned flame = 1;
    flame = flame * 1664525u + 1013904223u;
    if (share.rank == 1) field[share.cells() / 2] += flame >> 20;"
      forgetful
      "${right}")
  if(forgetful STREQUAL right)
    message(FATAL_ERROR "${heat2d} has no line any more to plant the mistake at")
  endif()
  file(CONFIGURE OUTPUT forgetful_heat2d.cpp CONTENT "${forgetful}" @ONLY)
  add_executable(forgetful_heat2d ${CMAKE_CURRENT_BINARY_DIR}/forgetful_heat2d.cpp)
  target_include_directories(forgetful_heat2d PRIVATE ${PROJECT_SOURCE_DIR}/examples)
  target_link_libraries(forgetful_heat2d PRIVATE example_job belay_warnings)
  set(belay_forgetful_heat2d $<TARGET_FILE:forgetful_heat2d>)
endif()

# belay_tool_test(NAME FILE [CLASS ...]): the tests of one file, or of some classes in it.
function(belay_tool_test name file)
  add_test(NAME cli.${name} COMMAND ${belay_system_python} -B ${CMAKE_CURRENT_SOURCE_DIR}/${file}
                                    ${ARGN})
  set_tests_properties(
    cli.${name}
    PROPERTIES
      LABELS cli
      TIMEOUT 300
      COST 15
      ENVIRONMENT
      "BELAY_TOOL=$<TARGET_FILE:belay_tool>;REHEARSED=$<TARGET_FILE:rehearsed>;FORGETFUL_HEAT2D=${belay_forgetful_heat2d};MPIEXEC=${MPIEXEC_EXECUTABLE};EXAMPLES=$<TARGET_FILE_DIR:quickstart>;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_mpi_yield_when_idle=1"
  )
endfunction()

belay_tool_test(doctor doctor_test.py)
belay_tool_test(bench bench_test.py)
belay_tool_test(rehearse rehearse_test.py SoloPrograms Processes Wrong)
if(MPI_CXX_FOUND)
  belay_tool_test(rehearse_mpi rehearse_test.py MpiPrograms)
  set_tests_properties(cli.rehearse_mpi PROPERTIES PROCESSORS 2)
endif()
