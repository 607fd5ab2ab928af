// Package bootstrap brings the processes of a job together and gives them a small exchange.
//
// # How to use it
//
//	choice, err := bootstrap.Resolve(options)   // which method, which PE of how many, and why (for shmem.info())
//	r, err := bootstrap.Join(ctx, choice)       // blocks until all n PEs have come, or ctx ends
//	blobs, err := r.Allgather(ctx, mine)        // any size up to MaxBlob, different sizes welcome
//	err = r.Barrier(ctx)
//	r.Close()                                   // no goroutine, descriptor or file is left
//
// # How it works
//
// One process, the host, listens; all PEs are its members (a star). The host is the process that made the unique id, that
// inherited the launcher's listening socket, or else PE 0; its own PE is a member without a connection. Every connection is TLS
// 1.3 between two identities derived from the job's secret (see [Identity]): a stranger is dropped before a byte of ours is
// parsed. The hello carries the library's version, rank and size, so that PEs which do not fit together learn it here, all of
// them, with both sides in the words.
//
// # Methods
//
//   - uid: 128 bytes made by [Offer] in one process and handed to the others by any broadcast. They hold the secret.
//   - env: SHMEM_RANK and SHMEM_SIZE (or those of an MPI, PMI or Slurm launcher), and SHMEM_UNIQUE_ID, or SHMEM_RENDEZVOUS
//     with SHMEM_SECRET. SHMEM_LISTEN_FD is a listening socket inherited from the launcher.
//   - endpoint: host:port of PE 0, which binds it. With a secret, or on loopback with a private file that PE 0 writes.
//   - file: a path where PE 0 publishes a unique id; the others poll it.
//   - single: one PE, no sockets.
//
// Files of an earlier run are harmless: what they say is only believed when the process at that address proves the secret
// in them, and a host whose file was replaced sends its members to the new one.
//
// # Failures
//
// Waits end with ctx. Whoever stops waiting tells the host, and the host tells everybody; the text names the PEs that were
// missing. After any failure the Rendezvous stays failed. A process that dies while the exchange runs is an error that names it
// on all others.
package bootstrap
