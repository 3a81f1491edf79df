package inspector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"hookglass/internal/web/show"
)

// Bounds of a tree. A browser lays out a few thousand lines at once; nobody reads more.
const (
	maxNodes  = 2000
	maxDepth  = 64
	maxString = 8 << 10
)

// Node is a JSON value with its members in the order sent, duplicates included.
type Node struct {
	Name     string // the member's name, as JSON; empty in an array
	Key      string // the member's name as it is, for pointers
	Kind     byte   // '{' '[' '"' '0' for a number, 'k' for true, false and null
	Text     string // of a scalar, as JSON
	Children []*Node
	More     bool // not all children were read
}

// parseTree reads JSON in order, keeping numbers as they are written. partial says that it stopped at a bound
// before the end; what follows was not looked at.
func parseTree(body []byte) (root *Node, partial bool, err error) {
	p := &treeParser{json.NewDecoder(bytes.NewReader(body)), maxNodes}
	p.UseNumber()
	root, err = p.value(0)
	if errors.Is(err, errBound) {
		return root, true, nil
	}
	if err == nil {
		if _, end := p.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("something follows the JSON value")
		}
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the JSON ends too early")
		}
		return nil, false, fmt.Errorf("%w, near byte %d", err, p.InputOffset())
	}
	return root, false, nil
}

var errBound = errors.New("a bound of the tree is reached")

type treeParser struct {
	*json.Decoder
	left int
}

func (p *treeParser) value(depth int) (*Node, error) {
	token, err := p.Token()
	if err != nil {
		return nil, err
	}
	if p.left--; p.left < 0 {
		return nil, errBound
	}
	switch v := token.(type) {
	case json.Delim:
		n := &Node{Kind: byte(v)}
		if depth >= maxDepth {
			n.More = true
			return n, errBound
		}
		return n, p.children(n, depth)
	case string:
		return &Node{Kind: '"', Text: quote(v)}, nil
	case json.Number:
		text, _ := show.Cut(v.String(), maxString)
		return &Node{Kind: '0', Text: text}, nil
	case bool:
		return &Node{Kind: 'k', Text: strconv.FormatBool(v)}, nil
	default:
		return &Node{Kind: 'k', Text: "null"}, nil
	}
}

// children reads to the end of an object or array. At a bound it returns with what it has.
func (p *treeParser) children(n *Node, depth int) error {
	for p.More() {
		name, raw := "", ""
		if n.Kind == '{' {
			token, err := p.Token()
			if err != nil {
				return err
			}
			key, ok := token.(string)
			if !ok {
				return errors.New("a member has no name")
			}
			name, raw = quote(key), key
		}
		child, err := p.value(depth + 1)
		if child != nil {
			child.Name, child.Key = name, raw
			n.Children = append(n.Children, child)
		}
		if err != nil {
			n.More = errors.Is(err, errBound)
			return err
		}
	}
	_, err := p.Token()
	return err
}

// quote is a string as JSON, with what a person should not stumble over spelled out.
func quote(s string) string {
	s, cut := show.Cut(s, maxString)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always can be
	text := show.Line(string(bytes.TrimRight(b.Bytes(), "\n")))
	if cut {
		text = text[:len(text)-1] + `…"`
	}
	return text
}

// summary says how much is inside.
func (n *Node) summary() string {
	noun := "item"
	if n.Kind == '{' {
		noun = "key"
	}
	text := show.Plural(int64(len(n.Children)), noun)
	if n.More {
		text += " and more"
	}
	return text
}

// opens reports whether a node is open at first: the upper levels are, unless they are long.
func (n *Node) opens(depth int) bool { return depth == 0 || depth < 3 && len(n.Children) <= 40 }

func (n *Node) closing() string {
	if n.Kind == '{' {
		return "}"
	}
	return "]"
}

func (n *Node) class() string {
	switch n.Kind {
	case '"':
		return "j-string"
	case '0':
		return "j-number"
	}
	return "j-word"
}

// jwt is the JSON Web Token that a header's value is or carries; empty: none.
func jwt(value string) string {
	_, token, ok := strings.Cut(value, " ")
	if !ok {
		token = value
	}
	if strings.HasPrefix(token, "eyJ") && strings.Count(token, ".") == 2 && len(token) < 16<<10 {
		return token
	}
	return ""
}
