#include "tools/plan/plan.h"

#include "tools/plan/context_parallel.h"
#include "tools/plan/data_parallel.h"
#include "tools/plan/expert_parallel.h"
#include "tools/plan/pipeline_bubble.h"
#include "tools/plan/state_memory.h"
#include "tools/plan/tensor_parallel.h"
#include "tools/plan/world_size.h"

namespace quadrille::plan {

std::vector<Account> Accounts(const scenario::Scenario& scenario) {
  std::vector<Account> accounts;
  accounts.push_back(DescribeWorldSize(scenario));
  accounts.push_back(DescribeStateMemory(scenario));
  accounts.push_back(DescribeDataParallel(scenario));
  accounts.push_back(DescribeTensorParallel(scenario));
  accounts.push_back(DescribePipeline(scenario));
  accounts.push_back(DescribeContextParallel(scenario));
  accounts.push_back(DescribeExpertParallel(scenario));
  return accounts;
}

}  // namespace quadrille::plan
