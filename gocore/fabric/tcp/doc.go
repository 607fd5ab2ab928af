// Package tcp is the fabric over TLS 1.3 on TCP: it needs no shared memory, no driver and no privileges.
//
// # How to use it
//
//	t, err := tcp.New(tcp.Config{...})      // listens at once, on the chosen interface
//	addresses := t.Addresses()              // publish them through the bootstrap exchange
//	err = t.Connect(ctx, peers)             // connects to the peers that are not reached otherwise
//	...                                     // fabric.Transport
//	t.Close()
//
// # How it works
//
// Every ordered pair of PEs has one connection: the initiator's requests go out on it, the target's replies come back. The target
// serves requests in order, from its own goroutine, on its [fabric.Memory]; its program does nothing. So operations of one PE to one
// other take effect in the order they were issued, which is all that Fence and PutSignal ask for. Quiet sends a flush to every PE with unconfirmed
// operations and waits for the acknowledgements. Large transfers travel in chunks, so that other operations slip in between.
//
// Both ends prove that they hold the world's secret, as the PE they say they are (bootstrap.Identity). A stranger is dropped before a byte
// is parsed; an authenticated peer is still checked: every reference against the memory, every length against the frame limit.
//
// # Who waits for whom
//
// Callers seal their frames into the connection's outbox and write them without blocking; when the socket is full, a goroutine writes
// the rest and callers wait for room, as long as their context allows. Nothing a caller gives up damages the stream.
//
// # Failures
//
// A connection that ends without a goodbye means that the peer's process is gone: every pending and later operation on that PE fails
// and names it, and Config.Lost is told once. Keepalive and a look at the kernel's last acknowledgement find hosts that vanished; a process that is merely
// stopped keeps its kernel answering and is waited for. A refused operation (a reference outside the target's memory) fails that operation only; for
// Put, which does not wait, it is reported by the next Quiet, Fence or PutSignal to that PE.
package tcp
