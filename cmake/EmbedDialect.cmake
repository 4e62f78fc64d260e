# How the .sql texts of one dialect become C++ constants. Run as a script with NAME, ROOT and OUT.
# Migrations are files NNNN_name.up.sql with NNNN_name.down.sql and NNNN_name.structure beside them.

function(literal out path)
  file(READ ${path} text)
  # A literal may hold 64 KiB at most: cut it into pieces that the compiler joins again.
  set(result "\"\"\n")
  string(LENGTH "${text}" length)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 piece)
    string(APPEND result "R\"~sql~(${piece})~sql~\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  set(${out} "${result}" PARENT_SCOPE)
endfunction()

literal(fragments ${ROOT}/src/dialects/${NAME}/fragments.sql)
literal(lock ${ROOT}/src/dialects/${NAME}/lock.sql)
literal(waiting ${ROOT}/src/dialects/${NAME}/waiting.sql)
literal(many ${ROOT}/src/dialects/${NAME}/many.sql)
literal(reading ${ROOT}/src/dialects/${NAME}/reading.sql)
literal(holders ${ROOT}/src/dialects/${NAME}/holders.sql)
literal(history ${ROOT}/src/dialects/${NAME}/history.sql)
literal(migrator ${ROOT}/src/dialects/${NAME}/migrator.sql)
literal(guard ${ROOT}/src/dialects/${NAME}/guard.sql)
literal(recording ${ROOT}/src/dialects/${NAME}/recording.sql)
literal(schema ${ROOT}/schema/${NAME}.sql)

file(GLOB ups ${ROOT}/migrations/${NAME}/*.up.sql)
list(SORT ups)
set(rows "")
foreach(up IN LISTS ups)
  get_filename_component(file ${up} NAME)
  string(REGEX MATCH "^([0-9][0-9][0-9][0-9])_(.*)\\.up\\.sql$" _ ${file})
  set(label ${CMAKE_MATCH_2})
  string(REGEX REPLACE "^0+" "" version ${CMAKE_MATCH_1})
  string(REPLACE ".up.sql" ".down.sql" down ${up})
  literal(up_text ${up})
  string(REPLACE ".up.sql" ".structure" structure ${up})
  literal(down_text ${down})
  literal(structure_text ${structure})
  string(APPEND rows "    {${version}, \"${label}\",\n${up_text},\n${down_text},\n${structure_text}},\n")
endforeach()

file(WRITE ${OUT}.new "// The .sql texts of one dialect. Generated from them.
#include \"dialects/dialect.hpp\"

namespace dlock::dialects::${NAME} {

const Texts& embedded_texts() noexcept {
  static const Migration migrations[] = {
${rows}  };
  static const Texts all{
${fragments}${lock}${waiting}${many}${reading}${holders}${history},
${fragments}${migrator},
${fragments}${guard},
${fragments}${recording},
${schema},
      migrations};
  return all;
}

}  // namespace dlock::dialects::${NAME}
")
file(COPY_FILE ${OUT}.new ${OUT})
file(REMOVE ${OUT}.new)
