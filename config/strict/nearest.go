package strict

// Nearest returns the known name that was probably meant: one that differs in
// at most two letters, and in at most half of them.
func Nearest(name string, known []string) (string, bool) {
	best, least := "", min(2, len(name)/2)+1
	for _, k := range known {
		if len(name) > 2*len(k)+2 {
			continue // a hostile name must not cost a long comparison
		}
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best, best != ""
}

// distance counts the letters to insert, remove or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
