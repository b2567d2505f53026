package merkle

import (
	"fmt"
	"strings"
)

// Subset says which entries of a tree are about one subject: how many there are
// and the root of the tree of these alone, in their order. It is signed like a
// head, of which it differs by its first line, so that neither passes for the
// other.
type Subset struct {
	Subject string // for example "token/…"
	Tree    int64  // entries of the whole tree that it speaks of
	Head    Head   // Origin of the whole tree, Size and Root of the subset
}

// SignSubset returns the subset as a signed note of four lines: the origin, a
// slash and the subject; the entries of the whole tree; those of the subset; its
// root.
func SignSubset(s Subset, private string) (string, error) {
	return sign("subset", fmt.Sprintf("%s/%s\n%d\n%d\n%s\n", s.Head.Origin, s.Subject, s.Tree, s.Head.Size, s.Head.Root), private)
}

// OpenSubset reads what SignSubset wrote. It returns an error unless the public
// key's owner signed it.
func OpenSubset(signed, public string) (s Subset, err error) {
	text, name, err := open("subset", signed, public)
	if err != nil {
		return s, err
	}
	head, remaining, _ := strings.Cut(text, "\n")
	subject, ok := strings.CutPrefix(head, name+"/")
	tree, remaining, cut := strings.Cut(remaining, "\n")
	if !ok || !cut || subject == "" {
		return s, fmt.Errorf("subset: %q is not a subject of %q", head, name)
	}
	if s.Tree, err = parseSize(tree); err != nil {
		return Subset{}, err
	}
	s.Subject = subject
	s.Head, err = parseHead(name + "\n" + remaining)
	return s, err
}
