package action

import (
	"hookglass"
	"hookglass/internal/jsondoc"
)

// summary is what a trace keeps of a step, already redacted. text comes last, because it may be cut to fit.
type summary struct {
	members []jsondoc.Member
	name    string // of the text
	text    string
	cut     bool // text is the beginning of a longer one
}

func sum(members ...jsondoc.Member) summary { return summary{members: members} }

func named(name string, v jsondoc.Value) jsondoc.Member { return jsondoc.Member{Name: name, Value: v} }

// bytes returns the summary within its bound, and whether anything was left out.
func (s summary) bytes() ([]byte, bool) {
	truncated := s.cut
	for limit := len(s.text); ; limit /= 2 {
		members := s.members[:len(s.members):len(s.members)]
		if s.name != "" {
			text, shorter := cut(s.text, limit)
			truncated = truncated || shorter
			members = append(members, named(s.name, jsondoc.Text(text)))
		}
		v := jsondoc.Members(members...)
		if v.Size() <= hookglass.MaxStepSummary {
			return v.Bytes(), truncated
		}
		truncated = true
		if limit == 0 || s.name == "" {
			return s.shortest(), true
		}
	}
}

// shortest keeps the first members that fit.
func (s summary) shortest() []byte {
	var kept []jsondoc.Member
	size := 2
	for _, m := range s.members {
		if size += len(m.Name) + m.Value.Size() + 8; size > hookglass.MaxStepSummary {
			break
		}
		kept = append(kept, m)
	}
	return jsondoc.Members(kept...).Bytes()
}
