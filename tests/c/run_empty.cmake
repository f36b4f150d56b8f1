# SPDX-License-Identifier: Apache-2.0
# cmake -D COMMAND="a;b" -D DIRECTORY=path -P run_empty.cmake: runs a command in a new empty directory.
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
execute_process(COMMAND ${COMMAND} WORKING_DIRECTORY ${DIRECTORY} RESULT_VARIABLE status)
file(REMOVE_RECURSE ${DIRECTORY})
if(NOT status EQUAL 0)
  message(FATAL_ERROR "failed: ${status}")
endif()
