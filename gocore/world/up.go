package world

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"time"

	"goshmem/gocore/bootstrap"
	"goshmem/gocore/coll"
	"goshmem/gocore/config"
	"goshmem/gocore/hot"
	"goshmem/gocore/liveness"
	"goshmem/gocore/segment"
	"goshmem/gocore/status"
)

// Version is the library's version; PEs of one job must have the same.
const Version = "1.0.0"

// New comes up as one PE of a new world. Collective over the new world; it returns when all PEs are up, or with the
// error that all of them get. ctx can call it off.
func New(ctx context.Context, o Options) (*World, error) {
	w, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if w.timeout >= 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, w.timeout, status.New(status.Timeout, "init", "not all PEs came within %v (SHMEM_TIMEOUT, or init's timeout)", w.timeout))
		defer stop()
	}
	if err := w.comeUp(ctx, o); err != nil {
		w.tearDown()
		return nil, err
	}
	if err := w.openWithWorld(ctx, o.At); err != nil { // all PEs fail alike
		_ = w.Finalize(5 * time.Second) // the first failure is the one to report
		return nil, err
	}
	w.upAfter = time.Since(w.began)
	return w, nil
}

// prepare reads the settings; nothing is opened yet.
func prepare(o Options) (*World, error) {
	given := map[string]string{}
	if o.HeapBytes > 0 {
		given["SHMEM_SYMMETRIC_SIZE"] = strconv.FormatUint(o.HeapBytes, 10)
	}
	if o.DeviceBytes > 0 {
		given["SHMEM_DEVICE_SIZE"] = strconv.FormatUint(o.DeviceBytes, 10)
	}
	for name, v := range map[string]string{"SHMEM_TRANSPORT": o.Transport, "SHMEM_INTERFACE": o.Interface, "SHMEM_DEVICE": o.Device} {
		if v != "" {
			given[name] = v
		}
	}
	cfg, err := config.Read(given, nil)
	if err != nil {
		return nil, err
	}
	if _, err := parseSpec(cfg.Device); err != nil {
		return nil, err
	}
	w := &World{cfg: cfg, label: o.Label, timeout: o.Timeout, began: time.Now(), closed: make(chan struct{}),
		completed: newCompletions(), teams: map[*Team]bool{}, loose: map[*lane]bool{}}
	if w.timeout == 0 {
		w.timeout = cfg.Timeout
	}
	w.blocks.byOff = map[spot]*Block{}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	w.engine = newEngine(w)
	return w, nil
}

// comeUp does the steps that need the others. After each exchange all PEs know of any PE's trouble and fail together.
func (w *World) comeUp(ctx context.Context, o Options) error {
	choice, err := bootstrap.Resolve(bootstrap.Options{Method: o.Method, Me: o.Me, N: o.N, UID: o.UID, Endpoint: o.Endpoint,
		Secret: o.Secret, Version: Version, FindOffer: o.FindOffer})
	if err != nil {
		return err
	}
	r, err := bootstrap.Join(ctx, choice)
	if err != nil {
		return err
	}
	defer r.Close()
	w.me, w.n, w.method, w.reason = r.Me, r.N, r.Method, r.Reason
	if w.label == "" {
		w.label = fmt.Sprintf("of %d PEs (%s)", w.n, r.Method)
	}
	w.how = make([]string, w.n)
	w.segs = make([]*segment.Segment, w.n)
	me := w.lay(r.Secret())
	if w.peers, err = w.introduce(ctx, r, me); err != nil {
		return err
	}
	if err := w.meet(ctx, r); err != nil {
		return err
	}
	if err := w.build(); err != nil {
		return err
	}
	if err := r.Barrier(ctx); err != nil {
		return err
	}
	w.world.publish() // every member has made its control block
	return nil
}

// lay makes everything of this PE that others will reach, and words it. Trouble is part of the words: the others must hear of it.
func (w *World) lay(secret []byte) intro {
	in := selfIntro(w.cfg.Transport)
	in.Heap, in.Scratch = w.cfg.SymmetricSize, w.cfg.ScratchSize
	if err := w.layOwn(secret, &in); err != nil {
		in.Trouble, in.Code = err.Error(), int32(status.Of(err))
	}
	return in
}

func (w *World) layOwn(secret []byte, in *intro) error {
	seg, err := segment.Create(segment.Options{Me: w.me, N: w.n, Scratch: w.cfg.ScratchSize, Heap: w.cfg.SymmetricSize, Dir: w.cfg.Dir, Refuse: w.refuse()})
	if err != nil {
		return err
	}
	w.seg, w.segs[w.me] = seg, seg
	w.host = newArena(seg, seg.Geo.HeapOff, seg.Geo.HeapLen, baseOf(seg.Bytes())+uintptr(seg.Geo.HeapOff), "SHMEM_SYMMETRIC_SIZE", w.wipeHost)
	w.scratch = newScratch(seg)
	w.stages = coll.NewStages(w.scratch)
	if w.leaveOff, w.leaves, err = w.scratch.Alloc(8 * uint64(w.n)); err != nil {
		return err
	}
	if in.Control, err = w.layWorldTeam(); err != nil {
		return err
	}
	in.Leave = w.leaveOff
	if w.n > 1 && w.cfg.Transport != "tcp" {
		card, err := seg.Share(secret)
		if err != nil {
			return err
		}
		in.Card = card.Encode()
	}
	if w.net, err = w.listen(secret); err != nil {
		return err
	}
	in.Net = w.net.addresses()
	return nil
}

func (w *World) refuse() segment.Refuse {
	return segment.Refuse{Memfd: w.cfg.Refuses("memfd"), Socket: w.cfg.Refuses("socket"), Proc: w.cfg.Refuses("proc"), Pidfd: w.cfg.Refuses("pidfd")}
}

// introduce exchanges intros and checks that they fit together.
func (w *World) introduce(ctx context.Context, r *bootstrap.Rendezvous, me intro) ([]intro, error) {
	blobs, err := r.Allgather(ctx, me.encode())
	if err != nil {
		return nil, err
	}
	all, err := decodeIntros(blobs)
	if err != nil {
		return nil, err
	}
	if err := agree(all); err != nil {
		return nil, err
	}
	w.crowded = crowded(all)
	if w.cfg.Crowded != "auto" {
		w.crowded = w.cfg.Crowded == "yes"
	}
	return all, nil
}

// meet maps whom it can, and connects to the rest. A pair counts as mapped when both could.
func (w *World) meet(ctx context.Context, r *bootstrap.Rendezvous) error {
	w.mapPeers(ctx, r.Secret())
	blobs, err := r.Allgather(ctx, w.mappedBits())
	if err != nil {
		return err
	}
	w.matrix = make([][]bool, w.n)
	for i := range w.n {
		w.matrix[i] = make([]bool, w.n)
		for j := range w.n {
			w.matrix[i][j] = len(blobs[i]) == w.n && len(blobs[j]) == w.n && blobs[i][j] == 1 && blobs[j][i] == 1
		}
	}
	if err := w.seg.Unshare(); err != nil {
		return err
	}
	var far []int
	for pe := range w.n {
		if w.matrix[w.me][pe] {
			continue
		}
		if s := w.segs[pe]; s != nil { // we could, it could not
			_ = s.Close() // only a mapping is given back
			w.segs[pe], w.how[pe] = nil, "it could not map this PE's memory"
		}
		far = append(far, pe)
	}
	trouble := w.connect(ctx, far)
	return w.together(ctx, r, trouble)
}

// together tells everybody of one's trouble, so that all come up or none does.
func (w *World) together(ctx context.Context, r *bootstrap.Rendezvous, trouble error) error {
	in := intro{}
	if trouble != nil {
		in.Trouble, in.Code = trouble.Error(), int32(status.Of(trouble))
	}
	blobs, err := r.Allgather(ctx, in.encode())
	if err != nil {
		return err
	}
	all, err := decodeIntros(blobs)
	if err != nil {
		return err
	}
	if trouble != nil {
		return trouble
	}
	for pe, in := range all {
		if in.Trouble != "" {
			return status.At(status.Code(in.Code), "init", pe, "it could not come up: %s", in.Trouble)
		}
	}
	return nil
}

// mapPeers opens the segments of all PEs that can be proved to share this host.
func (w *World) mapPeers(ctx context.Context, secret []byte) {
	var wg sync.WaitGroup
	gate := make(chan struct{}, 8) // descriptors are scarce with many PEs
	for pe := range w.n {
		if pe == w.me {
			w.how[pe] = "own memory"
			continue
		}
		if len(w.peers[pe].Card) == 0 {
			w.how[pe] = "SHMEM_TRANSPORT=tcp maps nobody"
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			gate <- struct{}{}
			defer func() { <-gate }()
			w.mapPeer(ctx, pe, secret)
		}()
	}
	wg.Wait()
}

func (w *World) mapPeer(ctx context.Context, pe int, secret []byte) {
	card, err := w.peers[pe].card()
	if err != nil {
		w.how[pe] = err.Error()
		return
	}
	s, how, err := segment.Open(ctx, card, segment.OpenOptions{Secret: secret, Refuse: w.refuse()})
	if err != nil {
		w.how[pe] = err.Error()
		return
	}
	w.segs[pe], w.how[pe] = s, how
}

func (w *World) mappedBits() []byte {
	bits := make([]byte, w.n)
	for pe, s := range w.segs {
		if s != nil {
			bits[pe] = 1
		}
	}
	return bits
}

// build makes the tables of this process, and starts watching the peers.
func (w *World) build() error {
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return status.Wrap(status.System, "init", err, "random number")
	}
	var err error
	if w.hot, err = hot.New(w.me, w.n, binary.LittleEndian.Uint64(id[:])); err != nil {
		return err
	}
	geo := w.seg.Geo
	own := w.seg.Bytes()
	index, err := w.hot.AddSegment(own[geo.HeapOff:geo.HeapOff+geo.HeapLen], geo.HeapOff, 0, hot.Host)
	if err != nil {
		return err
	}
	direct := true
	for pe, s := range w.segs {
		if s == nil {
			direct = false
			continue
		}
		all := s.Bytes()
		w.hot.SetWhole(pe, all)
		w.hot.SetBase(index, pe, all[geo.HeapOff:geo.HeapOff+geo.HeapLen])
	}
	w.hot.SetCrowded(w.crowded)
	w.direct = direct
	w.hot.SetDirect(direct)
	w.monitor = liveness.New(w.died)
	w.net.bind(w)
	if err := w.buildWorldTeam(); err != nil {
		return err
	}
	w.handle = w.hot.Publish()
	w.watch()
	return nil
}

// watch starts liveness for every mapped peer; the network transport reports the others.
func (w *World) watch() {
	for pe, s := range w.segs {
		if s == nil || pe == w.me {
			continue
		}
		var err error
		if fd := s.TakePidfd(); fd >= 0 {
			err = w.monitor.WatchPidfd(pe, fd)
		} else if alive, done := s.TakeProbe(); alive != nil {
			err = w.monitor.WatchProbe(pe, alive, done)
		} else {
			err = w.monitor.WatchPid(pe, w.peers[pe].Pid)
		}
		if err != nil {
			w.monitor.ReportLost(pe, err)
		}
	}
}
