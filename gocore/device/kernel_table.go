// Code generated from kernels/include/kernel_table.def (KERNEL_TABLE=write go test ./gocore/device). DO NOT EDIT.

package device

var kernelTable = []Kernel{
	{"gshmem_k_put", []string{"dst_sym", "src", "bytes", "pe"}},
	{"gshmem_k_get", []string{"dst", "src_sym", "bytes", "pe"}},
	{"gshmem_k_put_strided", []string{"dst_sym", "src", "elem_bytes", "dst_stride", "src_stride", "count", "pe"}},
	{"gshmem_k_get_strided", []string{"dst", "src_sym", "elem_bytes", "dst_stride", "src_stride", "count", "pe"}},
	{"gshmem_k_put_signal", []string{"dst_sym", "src", "bytes", "sig_sym", "value", "sig_op", "pe", "team"}},
	{"gshmem_k_put_value", []string{"dst_sym", "value", "bytes", "pe"}},
	{"gshmem_k_signal", []string{"sig_sym", "value", "sig_op", "pe"}},
	{"gshmem_k_signal_wait", []string{"sig", "cmp", "value", "seen_out", "team"}},
	{"gshmem_k_wait", []string{"ivar", "dtype", "cmp", "value_bits"}},
	{"gshmem_k_atomic_add", []string{"dst_sym", "dtype", "value_bits", "pe"}},
	{"gshmem_k_atomic", []string{"dst_sym", "op", "word_bytes", "value", "compare", "old_out", "pe"}},
	{"gshmem_k_quiet", []string{}},
	{"gshmem_k_barrier", []string{"team"}},
	{"gshmem_k_broadcast", []string{"team", "dst_sym", "src", "bytes", "root"}},
	{"gshmem_k_allgather", []string{"team", "dst_sym", "src", "bytes"}},
	{"gshmem_k_all_to_all", []string{"team", "dst_sym", "src", "bytes"}},
	{"gshmem_k_reduce_scatter", []string{"team", "dst", "src_sym", "count", "dtype", "op"}},
	{"gshmem_k_allreduce_one_shot", []string{"team", "dst", "src_sym", "count", "dtype", "op"}},
	{"gshmem_k_allreduce_two_shot", []string{"team", "dst_sym", "src_sym", "count", "dtype", "op"}},
	{"gshmem_k_kv_shuffle", []string{"team", "dst_sym", "src", "moves", "move_count", "block_bytes"}},
	{"gshmem_k_moe_dispatch", []string{"team", "recv_sym", "meta_sym", "flags_sym", "counts", "slots", "tokens", "ids", "token_count", "topk", "token_bytes", "experts_per_pe"}},
	{"gshmem_k_moe_combine", []string{"team", "out", "recv_sym", "slots", "ids", "weights", "token_count", "topk", "hidden", "experts_per_pe", "dtype"}},
	{"gshmem_k_matmul_allreduce", []string{"team", "c_sym", "a", "b", "work_sym", "flags_sym", "m", "n", "k", "epoch"}},
}
