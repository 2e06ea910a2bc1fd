#include "sim/model/layer_parts.h"

namespace quadrille::model {

namespace {

bool Selective(const ExecutionConfig& execution) {
  return execution.recomputation == Recomputation::kSelective;
}

}  // namespace

bool RecomputesExpertActivation(const ExecutionConfig& execution) {
  return Selective(execution) && execution.recompute_modules.expert_activation;
}
bool RecomputesDenseActivation(const ExecutionConfig& execution) {
  return Selective(execution) && execution.recompute_modules.dense_activation;
}
bool RecomputesNorm(const ExecutionConfig& execution) {
  return Selective(execution) && execution.recompute_modules.layernorm;
}
bool RecomputesMlp(const ExecutionConfig& execution) {
  return Selective(execution) && execution.recompute_modules.mlp;
}
bool RecomputesExperts(const ExecutionConfig& execution) {
  return Selective(execution) && execution.recompute_modules.experts;
}
bool RecomputesLatentUpProjection(const ExecutionConfig& execution) {
  return Selective(execution) && execution.recompute_modules.latent_up_projection;
}
bool RecomputesCoreAttention(const ExecutionConfig& execution) {
  return Selective(execution) && execution.recompute_modules.core_attention;
}

}  // namespace quadrille::model
