package json

import (
	"bytes"
	std "encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

type kind string

type inner struct {
	A  int64   `json:"a"`
	B  []byte  `json:"b,omitempty"`
	C  string  `json:"c,omitempty"`
	D  []inner `json:"d"`
	no int     // has no tag
}

type outer struct {
	Kind  kind     `json:"kind"`
	Flag  bool     `json:"flag"`
	Maybe bool     `json:"maybe,omitempty"`
	U     uint64   `json:"u"`
	I     int32    `json:"i,omitempty"`
	F     float64  `json:"f"`
	Names []string `json:"names,omitempty"`
	Near  []bool   `json:"near"`
	In    inner    `json:"in"`
	Ptr   *inner   `json:"ptr,omitempty"`
	Last  []uint64 `json:"last"`
	Plain uint8
}

var words = []string{"", "plain", "with \"quotes\" and \\", "line\nbreak\ttab", "\x00\x1f\x7f", "unicode é 漢字 😀 \u2028", "<a href='x'>&amp;</a>"}

func word(r *rand.Rand) string { return words[r.IntN(len(words))] }

func randomInner(r *rand.Rand, depth int) inner {
	in := inner{A: int64(r.Uint64()), C: word(r)}
	if r.IntN(2) == 0 {
		in.B = []byte(word(r))
	}
	for i := 0; depth > 0 && i < r.IntN(3); i++ {
		in.D = append(in.D, randomInner(r, depth-1))
	}
	return in
}

func random(r *rand.Rand) outer {
	o := outer{Kind: kind(word(r)), Flag: r.IntN(2) == 0, Maybe: r.IntN(2) == 0, U: r.Uint64(), Plain: uint8(r.Uint32()), I: int32(r.Uint32()), In: randomInner(r, 3)}
	o.F = []float64{0, -1, 0.1, 30, 1e21, 1e-9, math.MaxFloat64, r.Float64()}[r.IntN(8)]
	for range r.IntN(4) {
		o.Names, o.Near, o.Last = append(o.Names, word(r)), append(o.Near, r.IntN(2) == 0), append(o.Last, r.Uint64())
	}
	if r.IntN(2) == 0 {
		in := randomInner(r, 1)
		o.Ptr = &in
	}
	return o
}

// What we write the standard package reads as the same, and the other way round, compact or indented.
func TestAgainstTheStandardPackage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		want := random(r)
		theirs, err := std.Marshal(want)
		require.NoError(t, err)
		var normal outer // as it comes back: empty slices that are left out are nil
		require.NoError(t, std.Unmarshal(theirs, &normal))
		for _, text := range [][]byte{Marshal(want), MarshalIndent(want)} {
			var got outer
			require.NoError(t, std.Unmarshal(text, &got), "%s", text)
			require.Equal(t, normal, got)
			got = outer{}
			require.NoError(t, Unmarshal(text, &got), "%s", text)
			require.Equal(t, normal, got)
		}
		var got outer
		require.NoError(t, Unmarshal(theirs, &got))
		require.Equal(t, normal, got)
	}
}

func TestIndentedTextIsTheStandardOne(t *testing.T) {
	v := []struct {
		Name string   `json:"name"`
		More []string `json:"more"`
	}{{"a", []string{"x", "y"}}, {"b", []string{}}}
	want, err := std.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	require.Equal(t, string(want), string(MarshalIndent(v)))
}

func TestUnknownMembersAreSkipped(t *testing.T) {
	var got inner
	require.NoError(t, Unmarshal([]byte(` { "x" : [1, {"y":null}, "}"], "a" : -7 , "z":true,"b":null, "c":"\ud83d\ude00\u0041\/" } `), &got))
	require.Equal(t, inner{A: -7, C: "😀A/"}, got)
}

func TestBrokenTextIsAnError(t *testing.T) {
	good := Marshal(random(rand.New(rand.NewPCG(5, 6))))
	for n := range good {
		require.Error(t, Unmarshal(good[:n], &outer{}), "%s", good[:n])
	}
	for _, text := range []string{`{"u":-1}`, `{"i":3000000000}`, `{"flag":1}`, `{"f":"x"}`, `{"in":[]}`, `{"in":{"b":"?"}}`, `{"kind":"\x"}`, `{"kind":"\u00g0"}`,
		`{} {}`, `{"u":1,}`, `{,}`, `{"u" 1}`, `[]`, `nul`, `{"x":}`, `{"x":` + string(bytes.Repeat([]byte("["), 100000)) + `}`} {
		require.Error(t, Unmarshal([]byte(text), &outer{}), "%s", text)
	}
}

func TestUnknownKindsAreMistakes(t *testing.T) {
	require.Panics(t, func() { Marshal(map[string]int{"a": 1}) })
	require.Panics(t, func() {
		_ = Unmarshal([]byte(`{"m":{}}`), &struct {
			M map[string]int `json:"m"`
		}{})
	})
}
