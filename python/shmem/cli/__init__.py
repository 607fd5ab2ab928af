"""Commands: shmem-run starts a job on this host, shmem-config tells about the installation."""
