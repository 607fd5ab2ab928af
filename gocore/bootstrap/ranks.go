package bootstrap

import "strconv"

// ranks is who this process is, and who said so.
type ranks struct {
	me, n  int
	found  bool
	source string
}

// launchers are the environments that tell a process its rank, in order of preference. Where a variable must only count together
// with another (Slurm sets its task count outside of job steps as well), `only` names that one.
var launchers = [...]struct{ rank, size, only string }{
	{"SHMEM_RANK", "SHMEM_SIZE", ""},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ""},
	{"PMI_RANK", "PMI_SIZE", ""},
	{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", ""},
	{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
}

// findRanks takes rank and size from the options, or else from the first launcher's environment that has them.
func findRanks(o Options) (ranks, error) {
	if o.Me >= 0 && o.N > 0 {
		return checkRanks(ranks{o.Me, o.N, true, "the options"})
	}
	if o.Me >= 0 || o.N > 0 {
		return ranks{}, badConfig("rank (%d) and number of PEs (%d) go together: pass both, or -1 for both", o.Me, o.N)
	}
	for _, l := range launchers {
		rank, size := o.env(l.rank), o.env(l.size)
		if l.only != "" && o.env(l.only) == "" || l.only != "" && (rank == "" || size == "") {
			continue
		}
		switch {
		case rank == "" && size == "":
			continue
		case rank == "" || size == "":
			return ranks{}, badConfig("%s and %s go together, but only one of them is set (%q, %q)", l.rank, l.size, rank, size)
		}
		me, err1 := strconv.Atoi(rank)
		n, err2 := strconv.Atoi(size)
		if err1 != nil || err2 != nil {
			return ranks{}, badConfig("%s=%q and %s=%q are not numbers", l.rank, rank, l.size, size)
		}
		return checkRanks(ranks{me, n, true, l.rank + " and " + l.size})
	}
	return ranks{source: "default"}, nil
}

func checkRanks(r ranks) (ranks, error) {
	if r.n < 1 || r.n > MaxPEs || r.me < 0 || r.me >= r.n {
		return ranks{}, badConfig("PE %d of %d by %s is impossible: ranks go from 0 to the size less one, sizes up to %d", r.me, r.n, r.source, MaxPEs)
	}
	return r, nil
}
