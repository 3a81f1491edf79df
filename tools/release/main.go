// Release puts together what is given away of one version: archives for the platforms, Debian and RPM packages,
// completions and a manual page in them, the licences of everything that is linked in, a bill of materials, and
// checksums. It needs git, Go and the modules, and nothing else; the same commit gives the same bytes.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// platform is one that archives are made for.
type platform struct{ os, arch string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

func (p platform) String() string { return p.os + "_" + p.arch }

// release is one run.
type release struct {
	root    string // of the repository
	dist    string // where the results go
	work    string // what they are made of
	version string // v1.2.3, or what git says of a commit between versions
	time    time.Time
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	root := flag.String("root", ".", "the repository")
	only := flag.String("only", "", "one platform, such as linux_amd64, for trying")
	flag.Parse()
	if err := run(*root, *only); err != nil {
		log.Fatal(err)
	}
}

func run(root, only string) error {
	r, err := begin(root)
	if err != nil {
		return err
	}
	var made []platform
	for _, p := range platforms {
		if only != "" && only != p.String() {
			continue
		}
		log.Printf("building %s %s", r.version, p)
		if err := r.build(p); err != nil {
			return err
		}
		made = append(made, p)
	}
	modules, err := r.inventory(made)
	if err != nil {
		return err
	}
	if err := r.documents(); err != nil {
		return err
	}
	if err := r.writeLicences(modules); err != nil {
		return err
	}
	if err := r.writeBill(modules); err != nil {
		return err
	}
	for _, p := range made {
		if err := r.archive(p); err != nil {
			return err
		}
		if p.os == "linux" {
			if err := r.packages(p); err != nil {
				return err
			}
		}
	}
	if err := os.RemoveAll(r.work); err != nil {
		return err
	}
	return r.checksums()
}

// begin returns the release of what is checked out, with an empty directory for its files.
func begin(root string) (*release, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	r := &release{root: root, dist: filepath.Join(root, "dist")}
	if r.version, err = r.output(nil, "git", "describe", "--tags", "--always", "--dirty"); err != nil {
		return nil, err
	}
	seconds, err := r.output(nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, err
	}
	r.time = time.Unix(unix, 0).UTC()
	if err := os.RemoveAll(r.dist); err != nil {
		return nil, err
	}
	r.work = filepath.Join(r.dist, "work")
	return r, os.MkdirAll(r.work, 0o755)
}

// output runs a command at the root and returns what it prints.
func (r *release) output(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), env...)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, failure.String())
	}
	return strings.TrimSpace(string(out)), nil
}

func (r *release) binary(p platform) string {
	name := "hookglass"
	if p.os == "windows" {
		name += ".exe"
	}
	return filepath.Join(r.work, p.String(), name)
}

func (r *release) build(p platform) error {
	_, err := r.output([]string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch},
		"go", "build", "-trimpath", "-ldflags", "-s -w -X hookglass.Version="+r.version, "-o", r.binary(p), "./cmd/hookglass")
	return err
}

// documents writes the completions and the manual page, which the program itself knows.
func (r *release) documents() error {
	native := filepath.Join(r.work, "native")
	if _, err := r.output([]string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags", "-X hookglass.Version="+r.version, "-o", native, "./cmd/hookglass"); err != nil {
		return err
	}
	for name, args := range map[string][]string{
		"hookglass.bash": {"completion", "bash"}, "hookglass.zsh": {"completion", "zsh"}, "hookglass.fish": {"completion", "fish"}, "hookglass.1": {"__man"},
	} {
		text, err := r.output(nil, native, args...)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.work, name), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	page, err := os.ReadFile(filepath.Join(r.work, "hookglass.1"))
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(page); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.work, "hookglass.1.gz"), packed.Bytes(), 0o644)
}

var tagged = regexp.MustCompile(`^v(\d+\.\d+\.\d+)$`)

// packageVersion is the version as package managers order it: a commit that has no tag comes before every version that
// will.
func (r *release) packageVersion() string {
	if m := tagged.FindStringSubmatch(r.version); m != nil {
		return m[1]
	}
	return "0.0.0~" + r.time.Format("20060102150405") + "." + strings.NewReplacer("-", ".", "/", ".").Replace(r.version)
}

// packages makes the Debian and the RPM package.
func (r *release) packages(p platform) error {
	nfpm, err := r.output(nil, "go", "tool", "-modfile=tools/packages.mod", "-n", "nfpm")
	if err != nil {
		return err
	}
	env := []string{
		"ARCH=" + p.arch, "VERSION=" + r.packageVersion(), "BINARY=" + r.binary(p), "WORK=" + r.work, "SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.time.Unix(), 10),
	}
	for _, kind := range []string{"deb", "rpm"} {
		if _, err := r.output(env, nfpm, "package", "--config", "deploy/package/nfpm.yaml", "--packager", kind, "--target", r.dist); err != nil {
			return err
		}
	}
	return nil
}
