// ring.cpp - a program in the style of Ascend SHMEM's examples: short names, default arguments, streams, one process per device.
#include "shmem.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  const int pe = std::atoi(argv[1]), pes = std::atoi(argv[2]);
  aclInit(nullptr);
  aclrtSetDevice(pe);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  shmem_set_conf_store_tls(false, nullptr, 0);

  shmem_init_attr_t attributes;
  attributes.my_pe = pe;
  attributes.n_pes = pes;
  attributes.local_mem_size = 64UL * 1024 * 1024;
  std::snprintf(attributes.ip_port, sizeof attributes.ip_port, "tcp://127.0.0.1:%s", argv[3]);
  attributes.option_attr.data_op_engine_type = static_cast<data_op_engine_type_t>(ACLSHMEM_DATA_OP_MTE | ACLSHMEM_DATA_OP_SDMA);
  if (shmem_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes) != ACLSHMEM_SUCCESS) return 3;

  const int next = (shmem_my_pe() + 1) % shmem_n_pes(), count = 1000;
  auto *ring = static_cast<int32_t *>(aclshmemx_malloc(count * sizeof(int32_t)));
  auto *flag = static_cast<int32_t *>(shmem_calloc(1, sizeof(int32_t)));
  std::vector<int32_t> mine(count);
  for (int i = 0; i < count; i++) mine[i] = pe * 1000 + i;

  // Each PE hands on what it got, pes times: what comes back is its own.
  for (int step = 1; step <= pes; step++) {
    shmemx_putmem_on_stream(ring, mine.data(), count * sizeof(int32_t), next, stream);
    shmemx_quiet_on_stream(stream);
    shmem_signal_op_on_stream(flag, step, ACLSHMEM_SIGNAL_SET, next, stream);
    shmem_signal_wait_until_on_stream(flag, ACLSHMEM_CMP_GE, step, stream);
    aclrtMemcpyAsync(mine.data(), count * sizeof(int32_t), ring, count * sizeof(int32_t), ACL_MEMCPY_DEVICE_TO_HOST, stream);
    shmemx_barrier_all_on_stream(stream);
  }
  aclrtSynchronizeStream(stream);
  int wrong = 0;
  for (int i = 0; i < count; i++) wrong += mine[i] != pe * 1000 + i;
  shmem_put_double_mem_signal(reinterpret_cast<double *>(ring), reinterpret_cast<double *>(mine.data()), 1, reinterpret_cast<uint8_t *>(flag), 1000,
                              ACLSHMEM_SIGNAL_SET, next);
  aclshmem_signal_wait_until(flag, ACLSHMEM_CMP_EQ, 1000);
  std::printf("PE %d of %d: %d wrong\n", pe, pes, wrong);

  shmem_free(flag);
  aclshmemx_free(ring);
  const int rc = shmem_finalize();
  aclrtDestroyStream(stream);
  aclrtResetDevice(pe);
  aclFinalize();
  return rc == 0 && wrong == 0 ? 0 : 1;
}
