#include "sim/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

namespace quadrille {

void SetLogVerbosity(int verbosity) {
  auto logger = std::make_shared<spdlog::logger>("quadrille",
                                                 std::make_shared<spdlog::sinks::stderr_sink_st>());
  logger->set_pattern("%l: %v");
  logger->set_level(verbosity <= 0   ? spdlog::level::warn
                    : verbosity == 1 ? spdlog::level::info
                                     : spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace quadrille
