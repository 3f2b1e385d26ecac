package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
)

//go:embed pages
var pageFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// asset is a file that browsers keep for good, because its name has the hash of its bytes.
type asset struct {
	name string // with the hash
	kind string
	data []byte
}

// readAssets reads the files by their names without and with a hash.
func readAssets() map[string]asset {
	files, err := assetFiles.ReadDir("assets")
	assets := map[string]asset{}
	for _, f := range files {
		var data []byte
		if data, err = assetFiles.ReadFile("assets/" + f.Name()); err != nil {
			break
		}
		sum, ext := sha256.Sum256(data), path.Ext(f.Name())
		a := asset{f.Name()[:len(f.Name())-len(ext)] + "-" + hex.EncodeToString(sum[:6]) + ext, mime.TypeByExtension(ext), data}
		assets[f.Name()], assets[a.name] = a, a
	}
	if err != nil {
		panic(err) // they are in the program
	}
	return assets
}

func (c *console) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := c.assets[r.PathValue("name")]
	if !ok || a.name != r.PathValue("name") {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(a.data) // the client may be gone
}
