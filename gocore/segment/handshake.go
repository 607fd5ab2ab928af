package segment

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// The conversation on the sharing socket (all lengths fixed):
//
//	server -> client  challenge[32]
//	client -> server  challenge[32], proof[32] = HMAC(secret, "open"  | segment nonce | server's | client's challenge)
//	server -> client  proof[32]                = HMAC(secret, "share" | segment nonce | server's | client's challenge), with the descriptors
//
// Both also check through SO_PEERCRED that the other end runs as the same user.
const challengeSize = 32

func proof(secret []byte, role string, nonce [NonceSize]byte, server, client []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("goshmem segment " + role))
	h.Write(nonce[:])
	h.Write(server)
	h.Write(client)
	return h.Sum(nil)
}

var errStranger = errors.New("the other end does not know the job's secret")

// serverProof leads the server's part up to its answer, which is returned unsent.
func serverProof(conn io.ReadWriter, secret []byte, nonce [NonceSize]byte) ([]byte, error) {
	mine := make([]byte, challengeSize)
	if _, err := rand.Read(mine); err != nil {
		return nil, err
	}
	if _, err := conn.Write(mine); err != nil {
		return nil, err
	}
	hello := make([]byte, challengeSize+sha256.Size)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return nil, err
	}
	theirs := hello[:challengeSize]
	if !hmac.Equal(hello[challengeSize:], proof(secret, "open", nonce, mine, theirs)) {
		return nil, errStranger
	}
	return proof(secret, "share", nonce, mine, theirs), nil
}

// clientHello leads the client's part up to the server's answer and gives the proof that answer must hold.
func clientHello(conn io.ReadWriter, secret []byte, nonce [NonceSize]byte) (want []byte, err error) {
	theirs := make([]byte, challengeSize)
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return nil, err
	}
	mine := make([]byte, challengeSize)
	if _, err := rand.Read(mine); err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(mine, proof(secret, "open", nonce, theirs, mine)...)); err != nil {
		return nil, err
	}
	return proof(secret, "share", nonce, theirs, mine), nil
}

// checkPeerUser refuses another user's process at the other end.
func checkPeerUser(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if credErr != nil {
		return credErr
	}
	if int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("the other end runs as user %d, this process as %d", cred.Uid, os.Geteuid())
	}
	return nil
}
