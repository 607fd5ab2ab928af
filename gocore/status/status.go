// Package status is the one error vocabulary of shmem.
//
// A code says how much is lost: this call, this object, a peer, this process, or our own correctness. Whoever
// decides that something is an error describes it once, in an [Error]; callers add context or pass it on.
package status

import (
	"errors"
	"fmt"
)

// Code is a status as it crosses the C ABI. Zero is success, positive values are not errors.
type Code int32

// The vocabulary. The hundreds digit is the group; the numbers are ABI (gshmem.h has the same).
const (
	OK      Code = 0
	Pending Code = 1

	// This call was refused or gave up; nothing else is affected.
	InvalidArgument Code = -101
	InvalidPE       Code = -102
	NotSymmetric    Code = -103 // the address is not in symmetric memory, or the range leaves it
	Misaligned      Code = -104
	Unsupported     Code = -105
	Timeout         Code = -106
	Canceled        Code = -107
	Truncated       Code = -108

	// This object (team, block, handle) is not usable.
	StaleHandle  Code = -201
	TeamPoisoned Code = -202
	Mismatch     Code = -203
	HeapFull     Code = -204
	Asymmetric   Code = -205

	// A peer is lost or refused us.
	PeerDead        Code = -301
	PeerUnreachable Code = -302
	PeerLeft        Code = -303
	Aborted         Code = -304
	Unauthenticated Code = -305
	VersionSkew     Code = -306

	// This process cannot.
	NotInitialized Code = -401
	Finalized      Code = -402
	Forked         Code = -403
	System         Code = -404
	NoMemory       Code = -405
	Rendezvous     Code = -406
	BadConfig      Code = -407

	// A bug of ours.
	Internal Code = -501
)

var names = map[Code]string{
	OK: "ok", Pending: "pending", InvalidArgument: "invalid argument", InvalidPE: "invalid PE",
	NotSymmetric: "not symmetric memory", Misaligned: "misaligned", Unsupported: "not supported", Timeout: "timed out",
	Canceled: "canceled", Truncated: "truncated", StaleHandle: "stale handle", TeamPoisoned: "team is poisoned",
	Mismatch: "PEs disagree", HeapFull: "symmetric heap exhausted", Asymmetric: "asymmetric allocation",
	PeerDead: "peer died", PeerUnreachable: "peer unreachable", PeerLeft: "peer left the world", Aborted: "aborted",
	Unauthenticated: "not authenticated", VersionSkew: "library versions differ", NotInitialized: "not initialized",
	Finalized: "world is finalized", Forked: "called in a forked child", System: "system call failed",
	NoMemory: "out of memory", Rendezvous: "rendezvous failed", BadConfig: "bad setting", Internal: "internal error",
}

// String is the short name of the code, for the middle of a sentence.
func (c Code) String() string {
	if s, ok := names[c]; ok {
		return s
	}
	return fmt.Sprintf("status %d", int32(c))
}

// Error is one described failure. Op is what the user called, PE is whom it concerns (-1 when no one in particular),
// Detail holds the values seen and the knob to turn, Err is the cause.
type Error struct {
	Code   Code
	Op     string
	PE     int
	Detail string
	Err    error
}

// Error words the failure: operation, code, PE, detail, cause.
func (e *Error) Error() string {
	s := e.Code.String()
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	if e.PE >= 0 {
		s += fmt.Sprintf(" (PE %d)", e.PE)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, status.Timeout) work through the code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Error lets a Code serve as a sentinel for errors.Is.
func (c Code) Error() string { return c.String() }

// New describes a failure that concerns no PE in particular.
func New(code Code, op, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, PE: -1, Detail: fmt.Sprintf(format, args...)}
}

// At describes a failure that concerns one PE.
func At(code Code, op string, pe int, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, PE: pe, Detail: fmt.Sprintf(format, args...)}
}

// Wrap describes a failure caused by err.
func Wrap(code Code, op string, err error, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, PE: -1, Detail: fmt.Sprintf(format, args...), Err: err}
}

// Of gives the code of any error: OK for nil, Internal for one that was never described.
func Of(err error) Code {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	var c Code
	if errors.As(err, &c) {
		return c
	}
	return Internal
}
