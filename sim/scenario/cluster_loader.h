// A cluster from YAML: the fields of topology::ClusterSpec in snake_case, with its units.
#pragma once

#include "sim/scenario/yaml_reader.h"
#include "topology/cluster_spec.h"

namespace quadrille::scenario {

// Reads the map at "cluster" into `*cluster`, apart from `gpu` and `collectives`, which are maps of
// their own by now; the caller reads those through `reader` and calls Finish.
void LoadCluster(MapReader& reader, topology::ClusterSpec* cluster);

}  // namespace quadrille::scenario
