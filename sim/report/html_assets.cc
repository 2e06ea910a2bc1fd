// The assembler copies the files in as they are; the build system gives their paths. An array of
// numbers would be the portable way, but costs the compiler seconds.
#include "sim/report/html_assets.h"

#include <cstddef>

#define QUADRILLE_EMBED(symbol, path)                 \
  __asm__(                                            \
      ".section .rodata\n"                            \
      ".global quadrille_" #symbol                    \
      "_begin\n"                                      \
      ".global quadrille_" #symbol                    \
      "_end\n"                                        \
      "quadrille_" #symbol                            \
      "_begin:\n"                                     \
      ".incbin \"" path                               \
      "\"\n"                                          \
      "quadrille_" #symbol                            \
      "_end:\n"                                       \
      ".byte 0\n"                                     \
      ".previous\n");                                 \
  extern "C" const char quadrille_##symbol##_begin[]; \
  extern "C" const char quadrille_##symbol##_end[]

QUADRILLE_EMBED(page, QUADRILLE_PAGE_HTML);
QUADRILLE_EMBED(style, QUADRILLE_PAGE_CSS);
QUADRILLE_EMBED(script, QUADRILLE_PAGE_JS);
QUADRILLE_EMBED(chart, QUADRILLE_CHART_JS);

namespace quadrille::report {
namespace {

std::string_view Between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::string_view PageTemplate() { return Between(quadrille_page_begin, quadrille_page_end); }
std::string_view PageStyle() { return Between(quadrille_style_begin, quadrille_style_end); }
std::string_view PageScript() { return Between(quadrille_script_begin, quadrille_script_end); }
std::string_view ChartScript() { return Between(quadrille_chart_begin, quadrille_chart_end); }

}  // namespace quadrille::report
