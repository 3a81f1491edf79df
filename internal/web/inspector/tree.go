package inspector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/jsondoc"
	"hookglass/internal/web/show"
)

// Bounds of a tree. Browsers lay out a few thousand lines quickly, and nobody reads more.
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
	Held     bool // a string holds it, as Amazon SNS sends it
}

// parseTree parses JSON and keeps the order of members and the spelling of numbers. partial says that it stopped at a
// bound; the rest was not read.
func parseTree(body []byte) (root *Node, partial bool, err error) {
	return (&treeParser{left: maxNodes}).tree(body)
}

// formTree is the tree of a form of which a field holds a JSON object or array, as Slack and GitHub send it; nil: none
// does. Pointers into it are those of searches.
func formTree(form string) (root *Node, partial bool) {
	p := &treeParser{left: maxNodes}
	root = &Node{Kind: '{'}
	holds := false
	for name, value := range hookglass.Pairs(form) {
		if p.left--; p.left < 0 {
			root.More = true
			break
		}
		name, value = hookglass.Readable(name), hookglass.Readable(value)
		field := &Node{Kind: '"', Text: quote(value)}
		if jsondoc.Bracketed(value) {
			if inner, cut, err := p.tree([]byte(jsondoc.Unmarked(value))); err == nil && inner != nil {
				field, holds, partial = inner, true, partial || cut
			}
		}
		field.Name, field.Key = quote(name), name
		root.Children = append(root.Children, field)
	}
	if !holds {
		return nil, false
	}
	return root, partial || root.More
}

// tree is parseTree with the nodes that are left.
func (p *treeParser) tree(body []byte) (root *Node, partial bool, err error) {
	p.Decoder = json.NewDecoder(bytes.NewReader(body))
	p.UseNumber()
	root, err = p.value(0)
	if errors.Is(err, errBound) {
		return root, true, nil
	}
	if err == nil {
		if _, end := p.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("unexpected data after the JSON value")
		}
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("unexpected end of the JSON")
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
		if jsondoc.Bracketed(v) && json.Valid([]byte(v)) {
			return p.held(v, depth)
		}
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

// held reads the object or array that a string holds.
func (p *treeParser) held(text string, depth int) (*Node, error) {
	outer := p.Decoder
	defer func() { p.Decoder = outer }()
	p.Decoder = json.NewDecoder(strings.NewReader(text))
	p.UseNumber()
	n, err := p.value(depth)
	if n != nil {
		n.Held = true
	}
	return n, err
}

// children reads an object or array up to its end, or up to a bound.
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

// quote returns a string as JSON. Characters that would mislead a reader are escaped.
func quote(s string) string {
	s, cut := show.Cut(s, maxString)
	quoted, _ := api.JSON(s) // encoding a string cannot fail
	text := show.Line(string(quoted))
	if cut {
		text = text[:len(text)-1] + `…"`
	}
	return text
}

// summary counts the children.
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

// opens reports whether a node is expanded at first: the upper levels are, unless they are long.
func (n *Node) opens(depth int) bool { return depth == 0 || depth < 3 && len(n.Children) <= 40 }

func (n *Node) opening() string { return n.quotes() + string(n.Kind) }

func (n *Node) closing() string {
	if n.Kind == '{' {
		return "}" + n.quotes()
	}
	return "]" + n.quotes()
}

func (n *Node) quotes() string {
	if n.Held {
		return `"`
	}
	return ""
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

// jwt returns the JSON Web Token in a header's value, or "".
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
