-- Part: reads the letters that an index gave, in its order, with their facets.
-- in: positions — as JSON
-- whole: select l.pos … where true
 from json_each(:positions) j
cross join letter l on l.pos = j.value
cross join facet f on f.n = l.facet
