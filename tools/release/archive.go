package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// file is one that stands in an archive.
type file struct {
	name string // in the archive
	from string // on disk
	mode int64
}

// archive writes the program with what belongs to it, as tar.gz or, for Windows, zip.
func (r *release) archive(p platform) error {
	top := strings.Join([]string{"hookglass", r.version, p.os, p.arch}, "_")
	files := []file{
		{filepath.Base(r.binary(p)), r.binary(p), 0o755},
		{"LICENSE", filepath.Join(r.root, "LICENSE"), 0o644},
		{"THIRD_PARTY_LICENSES", filepath.Join(r.work, "THIRD_PARTY_LICENSES"), 0o644},
		{"README.md", filepath.Join(r.root, "README.md"), 0o644},
		{"CHANGELOG.md", filepath.Join(r.root, "CHANGELOG.md"), 0o644},
	}
	if p.os != "windows" {
		for _, name := range []string{"hookglass.bash", "hookglass.zsh", "hookglass.fish"} {
			files = append(files, file{"completions/" + name, filepath.Join(r.work, name), 0o644})
		}
		files = append(files, file{"man/hookglass.1", filepath.Join(r.work, "hookglass.1"), 0o644})
	}
	if p.os == "linux" {
		for _, name := range []string{"hookglass.service", "hookglass.env"} {
			files = append(files, file{"systemd/" + name, filepath.Join(r.root, "deploy/systemd", name), 0o644})
		}
		// The unit runs as this user, and both tell of this command.
		files = append(files, file{"systemd/sysusers.conf", filepath.Join(r.root, "deploy/package/sysusers.conf"), 0o644},
			file{"systemd/hookglass-service", filepath.Join(r.root, "deploy/package/hookglass-service"), 0o755})
	}
	if p.os == "windows" {
		return r.zip(filepath.Join(r.dist, top+".zip"), top, files)
	}
	return r.tar(filepath.Join(r.dist, top+".tar.gz"), top, files)
}

func (r *release) tar(to, top string, files []file) (err error) {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(packed)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: path.Join(top, f.name), Mode: f.mode, Size: int64(len(content)), ModTime: r.time, Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), packed.Close())
}

func (r *release) zip(to, top string, files []file) (err error) {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := zip.NewWriter(out)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: path.Join(top, f.name), Method: zip.Deflate, Modified: r.time}
		header.SetMode(os.FileMode(f.mode))
		entry, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(content); err != nil {
			return err
		}
	}
	return w.Close()
}

// checksums writes one line a file, as sha256sum -c reads it.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries {
		f, err := os.Open(filepath.Join(r.dist, e.Name()))
		if err != nil {
			return err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sum.Sum(nil), e.Name())
	}
	return os.WriteFile(filepath.Join(r.dist, "SHA256SUMS"), []byte(lines.String()), 0o644)
}
