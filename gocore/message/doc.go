// Package message is tagged messages between the members of a team: send, and receive with any source and any tag, in
// order per (source, tag).
//
// Each member has an area in its scratch (AreaSize bytes, zeroed, the offset known to all members) with one line and one ring of
// 128-byte slots per sender. A sender puts a slot and raises its tail by one PutSignal; the receiver takes slots out
// whenever it is polled and raises the sender's credit. All else stays with the sender until it is wanted:
//
//	inline    up to InlineBytes    the payload is in the slot
//	eager     up to the limit      copied to the sender's arena (one place per slot, leased at first use); the receiver copies it out
//	                               when it takes the slot, so credit frees slot and place together. The send is done at once.
//	direct    larger, symmetric    offer; the matched receiver gets it straight from the sender's heap; fin
//	staged    larger, ordinary     offer; the matched receiver answers go; chunks through two staging places of the sender,
//	                               each announced (chunk) and given back (taken); fin after the last
//
// A send that finds the ring full is queued here, and pumped by later polls. Slots are taken out without waiting for a matching
// receive, so rings never deadlock; unmatched small messages wait in Go memory of the receiver, unmatched large ones with the sender.
//
// Cancelling a receive puts its message back (a staged one starts over, in a new epoch); cancelling a send withdraws the offer.
//
// Requests are state machines: poll them with Step until done. Nothing here waits, and nothing starts a goroutine except to
// get from peers whose memory is not mapped.
package message
