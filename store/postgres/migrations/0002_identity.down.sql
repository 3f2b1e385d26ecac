alter table @.migration drop column hash;
