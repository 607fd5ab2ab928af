// Package heap hands out offsets of a symmetric heap. It touches no memory, has no clock and no lock: the same history
// gives the same answers on every PE, and the caller serialises the calls.
//
// A symmetric block is agreed in rounds: each member calls [Heap.Propose] with the highest bid so far (first 0), the largest
// answer is the next bid, until all members propose the bid itself; then each calls [Heap.Take]. Because a proposal never lies below
// its bid and bids only rise, the rounds end. Blocks of one PE alone come from the top end ([Heap.ProposeTop]), so that they
// rarely differ the members' low ends.
//
// The heap remembers which bytes were ever handed out: [Heap.Take] lists the parts of a block that may hold old
// data, so that memory promised to be zero costs nothing where it is fresh.
package heap
