// Asks two calculators that know nothing of us how many parts texts take.
// stdin: a list of texts; stdout: for each calculator the list of its answers.
const { SegmentedMessage } = require('sms-segments-calculator');
const split = require('split-sms').split;

const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const coding = { 'GSM-7': 7, 'UCS-2': 16, GSM: 7, Unicode: 16 };
process.stdout.write(JSON.stringify({
  'sms-segments-calculator': texts.map((text) => {
    const m = new SegmentedMessage(text);
    return { coding: coding[m.encodingName], parts: m.segmentsCount };
  }),
  'split-sms': texts.map((text) => {
    const m = split(text);
    return { coding: coding[m.characterSet], parts: m.parts.length };
  }),
}));
