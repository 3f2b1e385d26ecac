-- Part: what letters are counted by, but for the facet, which follows from the others.
{{letter_facet}}, hour
