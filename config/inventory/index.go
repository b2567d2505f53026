package inventory

// Index finds accounts in a list of them.
type Index struct {
	byID   map[int64]int
	byName map[string]int
	ids    map[string]int64 // by name
}

// IndexOf makes the index of a list. Of accounts with one name the first is found by it.
func IndexOf(list []Account) Index {
	x := Index{make(map[int64]int, len(list)), make(map[string]int, len(list)), make(map[string]int64, len(list))}
	for i, a := range list {
		x.add(i, a)
	}
	return x
}

func (x Index) add(i int, a Account) {
	if _, taken := x.byID[a.ID]; a.ID != 0 && !taken {
		x.byID[a.ID] = i
	}
	if first, taken := x.byName[a.Name]; !taken || first == i {
		x.byName[a.Name], x.ids[a.Name] = i, a.ID
	}
}

// Find returns the place of an account, found by its id, else by its name unless both
// have an id; -1 if it is not in the list.
func (x Index) Find(a Account) int {
	if i, ok := x.byID[a.ID]; ok {
		return i
	}
	if i, ok := x.byName[a.Name]; ok && (a.ID == 0 || x.ids[a.Name] == 0) {
		return i
	}
	return -1
}
