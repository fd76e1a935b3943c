/* Exports nothing by the name that is looked for. */
extern const int attune_strategie;
const int attune_strategie = 1;
