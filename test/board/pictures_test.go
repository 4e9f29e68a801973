package board

import (
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// maxPicture is how many bytes a picture of the docs may have.
const maxPicture = 150 << 10

// shrinkPictures gives pictures a palette of their most frequent colours: pages have few, and the files are kept for good.
func shrinkPictures(t *testing.T, dir string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.png"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no pictures in %s: %v", dir, err)
	}
	for _, path := range paths {
		shrink(t, path)
		if info, err := os.Stat(path); err != nil || info.Size() > maxPicture {
			t.Errorf("%s is too large for a picture of the docs: %v %v", path, info, err)
		}
	}
}

func shrink(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	full, err := png.Decode(file)
	if err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
	small := image.NewPaletted(full.Bounds(), palette(full))
	draw.Draw(small, full.Bounds(), full, full.Bounds().Min, draw.Src)
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(out, small); err != nil {
		t.Fatalf("writing %s: %v", path, err)
	}
}

// palette gives the 256 most frequent colours of a picture.
func palette(full image.Image) color.Palette {
	seen := map[color.RGBA]int{}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			if c, ok := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA); ok {
				seen[c]++
			}
		}
	}
	all := slices.SortedFunc(maps.Keys(seen), func(a, b color.RGBA) int { return cmp.Compare(seen[b], seen[a]) })
	found := color.Palette{}
	for _, c := range all[:min(256, len(all))] {
		found = append(found, c)
	}
	return found
}
