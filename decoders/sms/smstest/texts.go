// Package smstest holds texts with their expected number of parts, for the tests of every
// package that splits texts. The boundaries follow 3GPP TS 23.040 with
// 8-bit references: 160 and 153 septets, 70 and 67 UTF-16 units.
package smstest

import "strings"

// Text is a text with its expected coding and number of parts.
type Text struct {
	Name   string
	Text   string
	Coding int // 7 or 16
	Parts  int
}

// Texts returns texts for the alphabets, the boundaries and several languages.
func Texts() []Text {
	var texts []Text
	for _, list := range [][]Text{septets(), escapes(), units(), pairs(), lookalikes(), gsmWords(), words()} {
		texts = append(texts, list...)
	}
	return texts
}

func a(n int) string { return strings.Repeat("a", n) }

func septets() []Text {
	return []Text{
		{"one letter", "a", 7, 1},
		{"one less than a message", a(159), 7, 1},
		{"a whole message", a(160), 7, 1},
		{"one more than a message", a(161), 7, 2},
		{"two whole parts", a(306), 7, 2},
		{"one more than two parts", a(307), 7, 3},
		{"three whole parts", a(459), 7, 3},
		{"one more than three parts", a(460), 7, 4},
		{"ten whole parts", a(1530), 7, 10},
		{"one more than ten parts", a(1531), 7, 11},
		{"the largest number of parts", a(255 * 153), 7, 255},
		{"a whole message of Greek capitals", strings.Repeat("Ω", 160), 7, 1},
		{"one Greek capital more than a message", strings.Repeat("Ω", 161), 7, 2},
	}
}

func escapes() []Text {
	return []Text{
		{"one euro", "€", 7, 1},
		{"a whole message of euros", strings.Repeat("€", 80), 7, 1},
		{"one euro more than a message", strings.Repeat("€", 81), 7, 2},
		{"two parts of euros with a spare septet each", strings.Repeat("€", 152), 7, 2},
		{"one euro more than two parts", strings.Repeat("€", 153), 7, 3},
		{"a euro as the end of a message", a(158) + "€", 7, 1},
		{"a euro across the end of a message", a(159) + "€", 7, 2},
		{"a euro that would be split, then as much as fits", a(152) + "€" + a(151), 7, 2},
		{"a euro that would be split, then one more", a(152) + "€" + a(152), 7, 3},
		{"a euro at the end of the first part", a(151) + "€" + a(153), 7, 2},
		{"a euro at the beginning of the second part", a(153) + "€" + a(151), 7, 2},
		{"a euro that would be split at each boundary", a(152) + "€" + a(152) + "€" + a(152) + "€", 7, 4},
		{"a bracket that would be split", a(152) + "[" + a(152), 7, 3},
		{"every printable character of the extension table", "^{}\\[~]|€", 7, 1},
		{"a JSON object", `{"id":17,"list":[1,2,3],"text":"a|b"}`, 7, 1},
		{"a form feed", "a\fb", 7, 1},
		{"a whole message of braces", strings.Repeat("{}", 40), 7, 1},
		{"one brace more than a message", strings.Repeat("{}", 40) + "{", 7, 2},
	}
}

func units() []Text {
	return []Text{
		{"one ideograph", "你", 16, 1},
		{"a whole message of ideographs", strings.Repeat("你", 70), 16, 1},
		{"one ideograph more than a message", strings.Repeat("你", 71), 16, 2},
		{"two whole parts of ideographs", strings.Repeat("你", 134), 16, 2},
		{"one ideograph more than two parts", strings.Repeat("你", 135), 16, 3},
		{"three whole parts of ideographs", strings.Repeat("你", 201), 16, 3},
		{"one ideograph more than three parts", strings.Repeat("你", 202), 16, 4},
		{"ten whole parts of ideographs", strings.Repeat("你", 670), 16, 10},
		{"one ideograph more than ten parts", strings.Repeat("你", 671), 16, 11},
		{"the largest number of parts of ideographs", strings.Repeat("你", 255*67), 16, 255},
		{"a whole message of letters and an ideograph", a(69) + "你", 16, 1},
		{"one letter more than a message with an ideograph", a(70) + "你", 16, 2},
		{"160 letters and an ideograph", a(160) + "你", 16, 3},
		{"a euro is one unit if the text has an ideograph", strings.Repeat("€", 69) + "你", 16, 1},
	}
}

func pairs() []Text {
	return []Text{
		{"one emoji", "🎉", 16, 1},
		{"a whole message of emoji", strings.Repeat("🎉", 35), 16, 1},
		{"one emoji more than a message", strings.Repeat("🎉", 36), 16, 2},
		{"two parts of emoji", strings.Repeat("🎉", 66), 16, 2},
		{"one emoji more than two parts", strings.Repeat("🎉", 67), 16, 3},
		{"an emoji as the end of a message", a(68) + "🎉", 16, 1},
		{"an emoji across the end of a message", a(69) + "🎉", 16, 2},
		{"an emoji that would be split, then as much as fits", a(66) + "🎉" + a(65), 16, 2},
		{"an emoji that would be split, then one more", a(66) + "🎉" + a(66), 16, 3},
		{"an emoji at the end of the first part", a(65) + "🎉" + a(67), 16, 2},
		{"an emoji at the beginning of the second part", a(67) + "🎉" + a(65), 16, 2},
		{"an emoji that would be split at each boundary", a(66) + "🎉" + a(64) + "🎉" + a(64) + "🎉", 16, 4},
		{"a rare ideograph", "𠮷野家", 16, 1},
		{"mathematical letters", strings.Repeat("𝒜", 34), 16, 1},
	}
}

// lookalikes returns texts with characters that resemble characters of the alphabet.
func lookalikes() []Text {
	return []Text{
		{"a small c with cedilla", "français", 16, 1},
		{"a capital C with cedilla", "FRANÇAIS", 7, 1},
		{"a tab", "a\tb", 16, 1},
		{"a no-break space", "10\u00a0000", 16, 1},
		{"a backtick", "`code`", 16, 1},
		{"an apostrophe", "it's", 7, 1},
		{"a typographic apostrophe", "it’s", 16, 1},
		{"70 letters and a typographic apostrophe", a(70) + "’", 16, 2},
		{"a dash and an ellipsis", "wait – now…", 16, 1},
		{"typographic quotes", "“quoted”", 16, 1},
		{"a zero-width space", "a\u200bb", 16, 1},
		{"a letter with a combining accent", "cafe\u0301", 16, 1},
		{"a composed letter with an accent", "café", 7, 1},
		{"a small alpha", "α", 16, 1},
		{"a degree sign", "21 °C", 16, 1},
		{"a superscript", "m²", 16, 1},
	}
}

func gsmWords() []Text {
	return []Text{
		{"line ends of three kinds", "one\ntwo\r\nthree\rfour", 7, 1},
		{"currency signs", "£5, $6, ¥7, ¤8", 7, 1},
		{"German", "Größe, Übermaß, Äpfel und Öl: 5 €", 7, 1},
		{"Nordic", "Ærø, Ångström, Øresund, blåbær", 7, 1},
		{"Italian", "Perché così? È già più tardi.", 16, 1},
		{"Spanish", "¿Mañana? ¡Sí, mañana!", 16, 1},
		{"Spanish without an acute i", "¿Mañana? ¡Claro, señora!", 7, 1},
		{"Greek capitals of the alphabet", "ΔΦΓΛΩΠΨΣΘΞ", 7, 1},
		{"a web address", "https://example.com/a?b=c&d=e~f#g_h", 7, 1},
	}
}

func words() []Text {
	return []Text{
		{"Russian, two parts", strings.Repeat("Привет! ", 9), 16, 2},
		{"Arabic, one part", "مرحبا بالعالم", 16, 1},
		{"Arabic, two parts", strings.Repeat("سلام ", 20), 16, 2},
		{"Hebrew", "שלום עולם", 16, 1},
		{"Hindi", "नमस्ते दुनिया", 16, 1},
		{"Thai", "สวัสดีชาวโลก", 16, 1},
		{"Korean, three parts", strings.Repeat("안녕하세요 ", 25), 16, 3},
		{"Japanese", "こんにちは、世界。", 16, 1},
		{"Vietnamese", "Xin chào thế giới", 16, 1},
		{"Polish", "Zażółć gęślą jaźń", 16, 1},
		{"Turkish", "İstanbul'da ışık", 16, 1},
		{"Portuguese", "Não há avião", 16, 1},
		{"Czech", "Příliš žluťoučký kůň", 16, 1},
		{"a family of emoji", "👨‍👩‍👧‍👦", 16, 1},
		{"a flag", "🇬🇧", 16, 1},
		{"a one-time password", "123456 is your code. It expires in 10 minutes.", 7, 1},
	}
}
