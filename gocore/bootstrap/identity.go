package bootstrap

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// MaxPEs bounds what a PE number may be before anything is computed from it.
const MaxPEs = 1 << 20

// MinSecret is the least number of bytes a job's secret may have. Keys are derived from it without stretching, so it has to be
// random, not a password.
const MinSecret = 16

// ErrNotAuthenticated marks a connection whose other end does not know the job's secret.
var ErrNotAuthenticated = errors.New("the other end does not hold this job's secret")

const keySalt = "goshmem identity v1"

// Identity is who a PE is on a connection: an ed25519 key that everyone with the job's secret can derive for every (role, PE),
// and nobody else can. Both ends of a connection pin the key they expect, so there is no certificate authority, no
// host name, no clock and nothing to configure. An Identity is immutable and safe for concurrent use.
type Identity struct {
	secret []byte
	cert   tls.Certificate
}

// NewIdentity derives the identity of a PE in a role ("host", "member", "fabric", ...). The secret must have MinSecret bytes.
func NewIdentity(secret []byte, role string, pe int) (*Identity, error) {
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("the job's secret has %d bytes, at least %d random ones are needed", len(secret), MinSecret)
	}
	key, err := deriveKey(secret, role, pe)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(pe) + 1), // the PE this certificate claims; worth nothing until its key is compared
		Subject:      pkix.Name{CommonName: role},
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Unix(1<<34, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &Identity{secret: bytes.Clone(secret), cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

// Dialer is the configuration for connecting to that peer and to nobody else.
func (id *Identity) Dialer(role string, pe int) *tls.Config {
	return id.config(func(cs tls.ConnectionState) error { return id.pin(cs, role, pe) })
}

// Acceptor is the configuration for accepting any PE below n in that role; [PeerOf] then tells which one it was.
func (id *Identity) Acceptor(role string, n int) *tls.Config {
	c := id.config(func(cs tls.ConnectionState) error {
		pe := PeerOf(cs)
		if pe < 0 || pe >= n {
			return fmt.Errorf("a peer claims to be PE %d of %d: %w", pe, n, ErrNotAuthenticated)
		}
		return id.pin(cs, role, pe)
	})
	c.ClientAuth = tls.RequireAnyClientCert
	return c
}

// PeerOf is the PE of the other end of a connection made with Dialer or Acceptor, -1 when it claims none.
func PeerOf(cs tls.ConnectionState) int {
	if len(cs.PeerCertificates) == 0 {
		return -1
	}
	serial := cs.PeerCertificates[0].SerialNumber
	if serial == nil || !serial.IsInt64() || serial.Int64() < 1 || serial.Int64() > MaxPEs {
		return -1
	}
	return int(serial.Int64() - 1)
}

func (id *Identity) config(verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		Certificates:                []tls.Certificate{id.cert},
		MinVersion:                  tls.VersionTLS13,
		CurvePreferences:            []tls.CurveID{tls.X25519}, // all ends are ours, and it is the cheapest
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
		InsecureSkipVerify:          true, // no names and no authority: VerifyConnection compares the key itself
		VerifyConnection:            verify,
	}
}

// pin compares the peer's public key, whose possession the handshake proves, with the one derived from the secret.
func (id *Identity) pin(cs tls.ConnectionState, role string, pe int) error {
	want, err := deriveKey(id.secret, role, pe)
	if err != nil {
		return err
	}
	if len(cs.PeerCertificates) == 0 {
		return ErrNotAuthenticated
	}
	got, ok := cs.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || !want.Public().(ed25519.PublicKey).Equal(got) {
		return ErrNotAuthenticated
	}
	return nil
}

func deriveKey(secret []byte, role string, pe int) (ed25519.PrivateKey, error) {
	seed, err := hkdf.Key(sha256.New, secret, []byte(keySalt), fmt.Sprintf("%s/%d", role, pe), ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// DeriveSecret gives a secret for one purpose, so that knowing it tells nothing about the job's own or another one.
func DeriveSecret(secret []byte, purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, []byte(keySalt), "secret/"+purpose, 32)
}
