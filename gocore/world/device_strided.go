package world

import (
	"context"

	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// Strided access for any mix of memory. Strides are in elements.

// strided is one such access as seen from this PE: the symmetric side at `at`, the local side at `local`.
type strided struct {
	op          string
	putting     bool
	at, local   uintptr
	as, ls      int64 // strides in elements
	elem, count uint64
	pe          int
}

// IputAny puts count elements of elem bytes each.
func (w *World) IputAny(ctx context.Context, dst, src uintptr, ds, ss int64, elem, count uint64, pe int) error {
	return w.strided(ctx, strided{"iput", true, dst, src, ds, ss, elem, count, pe})
}

// IgetAny gets count elements of elem bytes each.
func (w *World) IgetAny(ctx context.Context, dst, src uintptr, ds, ss int64, elem, count uint64, pe int) error {
	return w.strided(ctx, strided{"iget", false, src, dst, ss, ds, elem, count, pe})
}

// intoStride is the stride of the side that is written.
func (s strided) intoStride() int64 {
	if s.putting {
		return s.as
	}
	return s.ls
}

func (w *World) strided(ctx context.Context, s strided) error {
	if err := w.CheckStrided(s.op, s.at, s.as, s.ls, s.elem, s.count, s.pe); err != nil || s.elem == 0 || s.count == 0 {
		return err
	}
	if into := s.intoStride(); into == 0 && s.count > 1 {
		return status.New(status.InvalidArgument, s.op, "dst_stride is 0: all %d elements would go to one place; put the one that is meant", s.count)
	}
	x := w.device()
	if x != nil && x.state != nil && s.elem <= bounceBytes && (x.symmetric(s.at, 0) || x.holds(s.local) && x.kernelsReach(s.at, s.pe)) {
		if err := w.enter(s.op); err != nil {
			return err
		}
		defer w.exit()
		ctx, stop := w.bounded(ctx, Default)
		defer stop()
		if x.holds(s.local) {
			return x.stridedKernel(ctx, s, s.at, s.local, s.ls, s.count)
		}
		return x.stridedHost(ctx, s)
	}
	for i := range int64(s.count) {
		at, local := s.atElement(i), s.localElement(i)
		err := context.Cause(ctx) // mapped memory is moved without a look at it
		switch {
		case err != nil:
		case s.putting:
			err = w.PutAny(ctx, at, local, s.elem, s.pe, false)
		default:
			err = w.GetAny(ctx, local, at, s.elem, s.pe, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *strided) atElement(i int64) uintptr { return uintptr(int64(s.at) + i*s.as*int64(s.elem)) }
func (s *strided) localElement(i int64) uintptr {
	return uintptr(int64(s.local) + i*s.ls*int64(s.elem))
}

// stridedKernel moves between the symmetric side and device memory of this process, and waits.
func (x *accelerator) stridedKernel(ctx context.Context, s strided, at, local uintptr, stride int64, count uint64) error {
	if !x.kernelsReach(at, s.pe) {
		if _, err := x.twin(s.op, at, 0, s.pe); err != nil {
			return err
		}
	}
	as, ls := uint64(s.as*int64(s.elem)), uint64(stride*int64(s.elem))
	kernel, args := "gshmem_k_put_strided", []uint64{uint64(at), uint64(local), s.elem, as, ls}
	if !s.putting {
		kernel, args = "gshmem_k_get_strided", []uint64{uint64(local), uint64(at), s.elem, ls, as}
	}
	x.note(device.Own, s.op, false)
	if err := x.launch(kernel, device.Own, append(args, count, uint64(s.pe))...); err != nil {
		return err
	}
	return x.wait(ctx, s.op, device.Own)
}

// stridedHost packs host memory into the staging, or unpacks it from there, as many elements at a time as fit.
func (x *accelerator) stridedHost(ctx context.Context, s strided) error {
	per := bounceBytes / s.elem
	for first := uint64(0); first < s.count; first += per {
		n := min(per, s.count-first)
		err := x.throughBounce(n*s.elem, func(_ uint64, mem []byte) error {
			element := func(i uint64) ([]byte, []byte) {
				return mem[i*s.elem : (i+1)*s.elem], memoryAt(s.localElement(int64(first+i)), s.elem)
			}
			at := s.atElement(int64(first))
			if s.putting {
				for i := range n {
					packed, own := element(i)
					copy(packed, own)
				}
				if err := x.dev.Copy(x.bounce, x.pinned, n*s.elem, device.Own); err != nil {
					return err
				}
				return x.stridedKernel(ctx, s, at, x.bounce, 1, n)
			}
			if err := x.stridedKernel(ctx, s, at, x.bounce, 1, n); err != nil {
				return err
			}
			if err := x.dev.Copy(x.pinned, x.bounce, n*s.elem, device.Own); err != nil {
				return err
			}
			if err := x.wait(ctx, s.op, device.Own); err != nil {
				return err
			}
			for i := range n {
				packed, own := element(i)
				copy(own, packed)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
