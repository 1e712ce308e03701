package picture

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"runtime"
	"testing"
)

func encoded(t testing.TB, w, h int, noise bool, kind string) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range m.Pix {
		m.Pix[i] = 200
		if noise {
			m.Pix[i] = byte(rnd.Uint32())
		}
	}
	m.Set(0, 0, color.NRGBA{R: 255, A: 255})
	var b bytes.Buffer
	var err error
	if kind == "png" {
		err = png.Encode(&b, m)
	} else {
		err = jpeg.Encode(&b, m, &jpeg.Options{Quality: 100})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFit(t *testing.T) {
	for name, c := range map[string]struct {
		data   []byte
		shrunk bool
		mime   string
		w, h   int
	}{
		"small":       {encoded(t, 40, 30, true, "png"), false, "image/png", 40, 30},
		"at the edge": {encoded(t, MaxEdge, 10, false, "png"), false, "image/png", MaxEdge, 10},
		"too wide":    {encoded(t, 2*MaxEdge, 100, false, "png"), true, "image/png", MaxEdge, 50},
		"a line":      {encoded(t, 1, 5000, false, "png"), true, "image/png", 1, MaxEdge},
		"photograph":  {encoded(t, 2400, 1200, true, "jpeg"), true, "image/jpeg", MaxEdge, 1000},
		"noise":       {encoded(t, 1900, 1900, true, "png"), true, "image/jpeg", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, shrunk, err := Fit(c.data)
			if err != nil {
				t.Fatal(err)
			}
			if shrunk != c.shrunk || got.MIME != c.mime || Kind(got.Data) != c.mime || c.w > 0 && (got.Width != c.w || got.Height != c.h) {
				t.Errorf("got %s %dx%d, shrunk %v", got.MIME, got.Width, got.Height, shrunk)
			}
			if len(got.Data) > MaxBytes || got.Width > MaxEdge || got.Height > MaxEdge {
				t.Errorf("%d bytes, %dx%d is over the limit", len(got.Data), got.Width, got.Height)
			}
			if !shrunk && !bytes.Equal(got.Data, c.data) {
				t.Error("an image that fits was changed")
			}
		})
	}
}

// A header may claim any size. It is refused before memory is taken for it.
func TestFit_TakesNoMemoryForAClaim(t *testing.T) {
	bomb := encoded(t, 4, 4, false, "png")
	binary.BigEndian.PutUint32(bomb[16:], 60_000)
	binary.BigEndian.PutUint32(bomb[20:], 60_000)
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := Fit(bomb)
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Fatal("an image of 3.6 billion pixels was taken")
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes were allocated for it", n)
	}
}

func TestFit_RefusesWhatIsNone(t *testing.T) {
	whole := encoded(t, 40, 30, true, "png")
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("<svg/>"), "header only": whole[:20], "cut off": whole[:len(whole)/2], "bitmap": []byte("BM0000000000")} {
		if got, _, err := Fit(data); err == nil {
			t.Errorf("%s is taken for %+v", name, got.MIME)
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add(encoded(f, 3, 3, true, "png"))
	f.Add(encoded(f, 3, 3, true, "jpeg"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _, err := Fit(data)
		if err == nil && (len(got.Data) > MaxBytes || got.Width > MaxEdge || got.Height > MaxEdge || Kind(got.Data) == "") {
			t.Errorf("%s %dx%d, %d bytes", got.MIME, got.Width, got.Height, len(got.Data))
		}
	})
}
