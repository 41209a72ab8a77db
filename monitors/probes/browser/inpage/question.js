// The question as a page may show it: as it was typed, or with its HTML or Markdown carried out.
(() => {
  const look = globalThis.__lookout;
  if (look.Question) return;

  const UNREAD = /<(script|style|template|title)\b[^>]*>[\s\S]*?<\/\1\s*>|<!--[\s\S]*?-->/gi; // no page shows what is in these
  const TAG = /<\/?[a-z][\w-]*(\s[^<>]*)?\/?>/gi; // not <https://…>, which Markdown shows
  const NAMED = /&[a-z]{2,8}\d?;/gi; // nearly all of them are punctuation, of which nothing is compared
  const NUMBERED = /&#(x[\da-f]{1,6}|\d{1,7});/gi;
  const codeOf = (given) => (/^x/i.test(given) ? Number.parseInt(given.slice(1), 16) : Number(given));
  const character = (_, given) => (codeOf(given) <= 0x10ffff ? String.fromCodePoint(codeOf(given)) : "");
  const unmarked = (text) => text.replace(UNREAD, "").replace(TAG, "").replace(NAMED, "").replace(NUMBERED, character);

  // Marks that are letters or digits or hold some; of the others (**, #, -, |) nothing is compared anyway.
  const FENCE = /^[ \t]*(```|~~~)[^\n]*$/gm; // the language after it is no text
  const NUMBER = /^[ \t]*\d{1,9}[.)][ \t]+/gm;
  const TICK = /^([ \t]*[-*+][ \t]+)\[[ xX]\][ \t]/gm;
  const PICTURE = /!\[[^\]]*\]\([^()\s]*(\s+"[^"]*")?\)/g;
  const LINK = /\[([^\]]*)\]\([^()\s]*(\([^()\s]*\)[^()\s]*)*(\s+("[^"]*"|'[^']*'))?\)/g;
  const drawn = (text) => text.replace(FENCE, "").replace(TICK, "$1").replace(NUMBER, "").replace(PICTURE, "").replace(LINK, "$1");

  const TELLING = 8; // letters of a form that are found in a longer text by more than chance

  // `forms` are letters and digits alone, the longest first; none for a question without any.
  look.Question = class {
    constructor(question) {
      const text = question ?? "";
      const ways = [text, unmarked(text), drawn(text), unmarked(drawn(text)), text.replace(NUMBER, ""), text.replace(FENCE, "")];
      this.forms = [...new Set(ways.map(look.bare))].filter(Boolean).sort((a, b) => b.length - a.length);
      this.length = this.forms[0]?.length ?? 0;
      this.typed = look.bare(text);
    }

    get asked() {
      return this.forms.length > 0;
    }

    // Whether a text says the question and nothing else.
    is(bare) {
      return this.forms.includes(bare);
    }

    // The form of the question that a text holds, or null.
    in(bare) {
      return this.forms.find((form) => (form === this.typed || form.length >= TELLING) && bare.includes(form)) ?? null;
    }

    // Whether a text says how the question begins, and nothing else.
    begins(bare) {
      return bare.length >= TELLING && this.forms.some((form) => form !== bare && form.startsWith(bare));
    }

    // Whether a text says the question or how it begins, and nothing else. A word or two are said by chance.
    repeatedBy(bare) {
      return bare.length >= TELLING && (this.is(bare) || this.begins(bare));
    }

    // Whether a text is a part of the question.
    has(bare) {
      return this.forms.some((form) => form.includes(bare));
    }
  };
})();
