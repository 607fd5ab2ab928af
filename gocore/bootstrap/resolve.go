package bootstrap

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

// The methods. Auto lets the options and the environment decide.
const (
	Auto     = "auto"
	UID      = "uid"
	Env      = "env"
	Endpoint = "endpoint"
	File     = "file"
	Single   = "single"
)

// Options say what the caller knows; zero values (and -1 for Me and N) mean "from the environment".
type Options struct {
	Method    string
	Me, N     int                         // -1, -1: from the environment
	UID       []byte                      // method uid
	Endpoint  string                      // method endpoint: host:port of PE 0; method file: the path
	Secret    string                      // for endpoint; "": SHMEM_SECRET, or a private file on loopback
	Interface string                      // where PE 0 of method file listens; "": SHMEM_INTERFACE, see [Candidates]
	Version   string                      // this library's version, equal on all PEs
	LookupEnv func(string) (string, bool) // nil: the process's environment
	FindOffer func(uid []byte) *Offer     // finds an offer of this process; nil: there is none
	Layout    uint32                      // 0: this library's; tests set another
	process   string                      // tests name their PEs
}

// Choice is a resolved set of options: which method, which PE, and why.
type Choice struct {
	Method string
	Me, N  int
	Reason string // for shmem.info()

	route    route
	uid      []byte
	endpoint string // host:port, or the path
	secret   string
	listenFD int // inherited listening socket, -1 without
	options  Options
}

type route int

const (
	bySingle route = iota
	byUID
	byEndpoint
	byFile
)

func (o Options) env(name string) string {
	look := o.LookupEnv
	if look == nil {
		look = os.LookupEnv
	}
	v, _ := look(name)
	return strings.TrimSpace(v)
}

func badConfig(format string, args ...any) error {
	return status.New(status.BadConfig, "init", format, args...)
}

// Resolve decides which method applies and which PE this is, and says why. It opens nothing. Errors name the settings that are
// missing or contradict each other.
func Resolve(o Options) (Choice, error) {
	if o.Layout == 0 {
		o.Layout = layout.Version
	}
	if o.process == "" {
		o.process = processName()
	}
	who, err := findRanks(o)
	if err != nil {
		return Choice{}, err
	}
	c := Choice{Me: who.me, N: who.n, listenFD: -1, options: o, secret: o.Secret}
	if c.secret == "" {
		c.secret = o.env("SHMEM_SECRET")
	}
	if err := c.choose(o, who); err != nil {
		return Choice{}, err
	}
	c.Reason = fmt.Sprintf("%s; PE %d of %d by %s", c.Reason, c.Me, c.N, who.source)
	return c, nil
}

// choose fills in the method.
func (c *Choice) choose(o Options, who ranks) error {
	method := o.Method
	if method == "" || method == Auto {
		method = c.automatic(o, who)
	}
	if !who.found {
		if method != Single {
			return badConfig("method %s needs this process's rank and the number of PEs: pass them, or set SHMEM_RANK and SHMEM_SIZE", method)
		}
		c.Me, c.N = 0, 1
	}
	switch c.Method = method; method {
	case Single:
		return c.chooseSingle(o, who)
	case UID:
		return c.chooseUID(o.UID, "a unique id was given")
	case Endpoint:
		return c.chooseEndpoint(first(o.Endpoint, o.env("SHMEM_RENDEZVOUS")), "an endpoint was given")
	case File:
		return c.chooseFile(first(o.Endpoint, o.env("SHMEM_RENDEZVOUS")), "a file was given")
	case Env:
		return c.chooseEnv(o)
	}
	return badConfig("unknown method %q; there are auto, uid, env, endpoint, file and single", method)
}

// automatic picks by what is there: options first, then the environment, then a single PE.
func (c *Choice) automatic(o Options, who ranks) string {
	switch {
	case o.UID != nil:
		return UID
	case o.Endpoint != "" && isPath(o.Endpoint):
		return File
	case o.Endpoint != "":
		return Endpoint
	case o.env("SHMEM_UNIQUE_ID") != "" || o.env("SHMEM_RENDEZVOUS") != "":
		return Env
	}
	return Single
}

func (c *Choice) chooseSingle(o Options, who ranks) error {
	if who.found && (who.n != 1 || who.me != 0) {
		hint := "set SHMEM_RENDEZVOUS=host:port with SHMEM_SECRET, or a file path, or pass a unique id; or start with shmem-run"
		if who.source != "the options" {
			hint += "; for a single PE set SHMEM_RANK=0 SHMEM_SIZE=1"
		}
		return badConfig("this is PE %d of %d by %s, but nothing says where the PEs meet: %s", who.me, who.n, who.source, hint)
	}
	c.route, c.Reason = bySingle, "a single PE: nothing else was asked for"
	if !who.found && o.env("WORLD_SIZE") != "" && o.env("WORLD_SIZE") != "1" && o.Method != Single {
		return badConfig("a torchrun environment is set (WORLD_SIZE=%s), which the core does not read: use torch.distributed with backend=\"shmem\", pass a unique id, or ask for method \"single\"", o.env("WORLD_SIZE"))
	}
	return nil
}

func (c *Choice) chooseUID(uid []byte, why string) error {
	if uid == nil {
		return badConfig("method uid needs a unique id: pass the bytes that PE 0 made, or set SHMEM_UNIQUE_ID")
	}
	if _, err := decodeUID(uid); err != nil {
		return err
	}
	c.route, c.uid, c.Reason = byUID, uid, why
	return nil
}

func (c *Choice) chooseEndpoint(endpoint, why string) error {
	if err := checkEndpoint(endpoint); err != nil {
		return err
	}
	switch {
	case c.secret != "":
		if len(c.secret) < MinSecret {
			return badConfig("SHMEM_SECRET has %d characters, at least %d random ones are needed (for example from: openssl rand -hex 32)", len(c.secret), MinSecret)
		}
	case !isLoopback(endpoint):
		return badConfig("the endpoint %s is open to other hosts, so the job needs a secret: set SHMEM_SECRET to the same random string on all PEs (for example from: openssl rand -hex 32)", endpoint)
	default:
		why += ", the secret is in a private file"
	}
	c.route, c.endpoint, c.Reason = byEndpoint, endpoint, why
	return nil
}

func (c *Choice) chooseFile(path, why string) error {
	path = strings.TrimPrefix(path, "file:")
	if path == "" {
		return badConfig("method file needs a path: pass it as the endpoint, or set SHMEM_RENDEZVOUS")
	}
	c.route, c.endpoint, c.Reason = byFile, path, why
	return nil
}

func (c *Choice) chooseEnv(o Options) error {
	if text := o.env("SHMEM_UNIQUE_ID"); text != "" {
		uid, err := ParseUID(text)
		if err != nil {
			return err
		}
		return c.chooseUID(uid, "SHMEM_UNIQUE_ID is set")
	}
	where := o.env("SHMEM_RENDEZVOUS")
	if where == "" {
		return badConfig("method env needs SHMEM_RENDEZVOUS (host:port of PE 0, or a file path) or SHMEM_UNIQUE_ID")
	}
	if isPath(where) {
		return c.chooseFile(where, "SHMEM_RENDEZVOUS is a file")
	}
	if text := o.env("SHMEM_LISTEN_FD"); text != "" {
		fd, err := strconv.Atoi(text)
		if err != nil || fd < 0 {
			return badConfig("SHMEM_LISTEN_FD=%q is not a descriptor", text)
		}
		c.listenFD = fd
	}
	return c.chooseEndpoint(where, "SHMEM_RENDEZVOUS is an endpoint")
}

func isPath(s string) bool { return strings.Contains(s, "/") || strings.HasPrefix(s, "file:") }

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
