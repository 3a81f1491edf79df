package cli

import (
	"fmt"
	"io"
	"os"

	"hookglass/internal/server"
)

// readInput reads a file that a person names, - being standard input.
func readInput(t *server.Terminal, path string, limit int64) ([]byte, error) {
	if path == "-" {
		return readAll(t.In, "standard input", limit)
	}
	return readFile(path, limit)
}

func readFile(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, path, limit)
}

// readAll refuses what is longer than the limit: the beginning of it may mean something else.
func readAll(file io.Reader, name string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is longer than %d bytes", name, limit)
	}
	return text, err
}
