// Where an application's answers below onehop differ from those that Node alone gives, each with its reason. An entry
// says where it applies (`app`, `version`, `case`, `what`: a text, a list or a pattern; `if`: a function of the
// difference). Entries marked `open` are no intention but work to do.

export const DIFFERENCES = [];
